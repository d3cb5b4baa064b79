"""An evaluation as one HTML page that needs nothing else: a table, and learning curves as SVG."""

from collections.abc import Sequence
from html import escape

from audit.evaluation.evaluate import Evaluation, Tried
from learners.scores.wording import RATES, give_or_take, percent

_COLOURS = ("#0b6e8e", "#b3541e", "#5a7d2a", "#7a4b9c", "#444444", "#999999")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 300, 52, 34


def page(evaluation: Evaluation) -> str:
    """Return the whole page."""
    facts = "".join(f"<li>{escape(line)}</li>" for line in evaluation.csv.report.sentences())
    title = f"Evaluation of {escape(evaluation.file.name)}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto }}
table {{ border-collapse: collapse }} th, td {{ padding: .25rem .75rem; text-align: right }}
th:first-child, td:first-child {{ text-align: left }} tr {{ border-bottom: 1px solid #ccc }}
code {{ background: #eee; padding: .1rem .3rem }} svg {{ max-width: 100%; height: auto }}
</style></head><body>
<h1>{title}</h1>
<ul>{facts}</ul>
<h2>One pass, each patient before its label</h2>
<p>{evaluation.used:,} patients; each label is learned {_delay_in_words(evaluation.delay)}.</p>
{_table(evaluation)}
<h2>Learning curves</h2>
<p>Error rate among the last tenth of the patients.</p>
{_curves(evaluation.passes())}
<p>The command that writes the best of these settings:</p>
<p><code>{escape(evaluation.command)}</code></p>
</body></html>
"""


def _delay_in_words(delay: int) -> str:
    return f"{delay:,} patients later" if delay else "before the next patient comes"


def _table(evaluation: Evaluation) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("", *RATES.values(), "useful"))
    rows = "".join(_row(tried) for tried in evaluation.passes())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(tried: Tried) -> str:
    rates = tried.outcome.rates()
    cells = [give_or_take(rates[r.upper()], rates[f"{r.upper()}_se"]) for r in RATES]
    cells.append(f"after {tried.useful:,} labels" if tried.useful else "-")
    return f"<tr><td>{escape(tried.name)}</td>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"


def _curves(tried: Sequence[Tried]) -> str:
    curves = [(candidate.name, candidate.outcome.curve()) for candidate in tried]
    points = [point for _, curve in curves for point in curve]
    if not points:
        return "<p>There are no labelled patients.</p>"
    most = max(number for number, _ in points)
    top = 1.05 * max(0.01, *(share for _, share in points))

    def place(number: int, share: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 10) * number / most
        y = 10 + (_HEIGHT - _BOTTOM - 10) * (1 - share / top)
        return f"{x:.1f},{y:.1f}"

    lines = "".join(
        f'<polyline fill="none" stroke="{_COLOURS[i % len(_COLOURS)]}" stroke-width="2"'
        f' points="{" ".join(place(*point) for point in curve)}"><title>{escape(name)}</title>'
        "</polyline>"
        for i, (name, curve) in enumerate(curves)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Learning curves">'
        f"{_axes(most, top)}{lines}</svg>{_legend([name for name, _ in curves])}"
    )


def _axes(most: int, top: float) -> str:
    base, right = _HEIGHT - _BOTTOM, _WIDTH - 10
    marks = "".join(
        f'<text x="{_LEFT - 6}" y="{10 + (base - 10) * (1 - share) + 4:.0f}" text-anchor="end"'
        f' font-size="12">{percent(top * share)}</text>'
        for share in (0.0, 0.5, 1.0)
    )
    return (
        f'<path d="M{_LEFT} 10V{base}H{right}" fill="none" stroke="#888"/>{marks}'
        f'<text x="{right}" y="{base + 18}" text-anchor="end" font-size="12">{most:,} patients'
        "</text>"
    )


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<li style="color:{_COLOURS[i % len(_COLOURS)]}">{escape(name)}</li>'
        for i, name in enumerate(names)
    )
    return f"<ul>{items}</ul>"
