"""`hb plan`: what can be promised with a settings file, and what would have to change for more."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import JsonOption, err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import chance, percent

if TYPE_CHECKING:
    from cli.plan_bounds import EnsemblePlan, LearnerPlan, Plan


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(plan)


def plan(  # noqa: PLR0917 - options, which nobody passes by position
    settings: SettingsOption = None,
    set_: SetOption = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many patients to plan for.  [default: the learners' horizon or first phase]",
            show_default=False,
        ),
    ] = None,
    eps: Annotated[
        float, typer.Option(help="How far a learner may fall short of its best rule's accuracy.")
    ] = 0.1,
    delta: Annotated[float, typer.Option(help="The probability of missing that.")] = 0.05,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the curves as an image (.png, .svg, .pdf)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print what the theory promises for these settings, and what would have to change for more.

    For each learner: how finely its features are cut (m), how many cubes and how much memory that
    takes and, where the theorems apply, its regret bound (Theorem 1) and how many decisions will
    ever be made below the confidence of `--eps` and `--delta` (Corollary 1). For the ensemble: its
    regret bound, also with late labels. And, whatever the settings, how many labels it takes to
    know the error rate, and how closely miss targets are kept. A bound above the number of patients
    is marked as vacuous.

    Examples: `hb plan`, `hb plan --horizon 10000 --plot bounds.svg`, `hb plan --set
    ensemble.mode=ah`.
    """
    from cli.plan_bounds import plan as work_out

    result = work_out(load(settings, set_), horizon, eps, delta)
    if plot is not None:
        _draw(result, plot)
    if json:
        print_json({"figures": result.report()})
        return
    _print_learners(result)
    _print_ensemble(result)
    _print_known(result)
    if result.curves:
        _print_curves(result)
    if plot is not None:
        err.print(f"wrote {plot}", highlight=False)


def _print_learners(plan: "Plan") -> None:
    columns = ("learner", "features", "rules", "m", "cubes", "memory", "regret bound", "of T")
    rows = table(f"Local learners at T = {plan.T:,} patients", *columns, right=columns[1:])
    for p in plan.learners:
        rows.add_row(
            p.learner, str(p.features), str(p.rules), str(p.m), _short(p.cubes),
            _bytes(p.table_bytes), *_bound(p.regret_bound, plan.T),
        )  # fmt: skip
    out.print(rows)
    by_words: dict[str, list[str]] = {}
    for p in plan.learners:
        by_words.setdefault(_words(p, plan), []).append(p.learner)
    for words, names in by_words.items():
        out.print(f"  [bold]{', '.join(names)}[/bold]  {words}", highlight=False)


def _bound(bound: float | None, T: int) -> tuple[str, str]:
    """Return a bound and its share of T, for a table."""
    if bound is None:
        return "none", ""
    share = "[yellow]vacuous[/yellow]" if bound >= T else percent(bound / T)
    return f"{bound:,.0f}", share


def _words(p: "LearnerPlan", plan: "Plan") -> str:
    if p.caveats:
        return f"no bound and no confidence by theory: {'; '.join(p.caveats)}"
    if p.useful_from is None:
        line = "the regret bound is vacuous for any horizon up to 10^12"
    elif p.vacuous:
        line = f"the regret bound is vacuous before about {_short(p.useful_from)} patients"
    else:
        line = f"the regret bound is meaningful from about {_short(p.useful_from)} patients"
    if p.eps > p.eps_floor and plan.delta < p.delta_floor:
        return (
            f"{line}; nothing can be promised with {chance(1 - plan.delta)}: the index is made for"
            f" the horizon, which allows {chance(1 - p.delta_floor)} at most"
        )
    if p.trials is None or p.decisions is None:
        return (
            f"{line}; within {p.eps:g} of the best rule cannot be guaranteed: the partition alone"
            f" may cost {p.eps_floor:.3g}, and it would take {p.cuts_needed:,} cuts per feature to"
            f" come below {p.eps:g}"
        )
    return (
        f"{line}; within {p.eps:g} of the best rule, {chance(1 - plan.delta)} sure: at most"
        f" {_short(p.decisions)} decisions are ever made below this confidence"
        f" ({p.trials:,} of each rule in each cube)"
    )


def _print_ensemble(plan: "Plan") -> None:
    e = plan.ensemble
    rows = table("Ensemble", "against", "regret bound", "of T", right=("regret bound", "of T"))
    where = "" if e.context_cubes == 1 else " per context cube"
    best = f"best of {', '.join(e.experts)}{where} in hindsight, labels on time"
    rows.add_row(best, *_bound(e.regret_bound_against_best_expert, plan.T))
    for delay, bound in e.by_delay.items():
        if delay:
            rows.add_row(f"the same, labels {delay:,} labels late", *_bound(bound, plan.T))
    oracle = e.regret_bound_against_best_local_oracle
    rows.add_row("best local oracle (Theorem 3)", *_bound(oracle, plan.T))
    out.print(rows)
    for line in _advice(e):
        out.print(f"  {line}", highlight=False)


def _advice(e: "EnsemblePlan") -> list[str]:
    if e.caveats:
        return [
            f"no bound on regret: {'; '.join(e.caveats)}",
            (
                'for one: mode = "committee" with options = { use = "sample" }, as hb init --bound'
                " proposes; it bounds the errors against the best of several ways of fusing"
            ),
        ]
    oracle = e.regret_bound_against_best_local_oracle
    late = (
        "the bounds against the experts hold for labels that late, whatever the patients, and when"
        " learners are silent"
    )
    if e.partitions > 1:
        late += (
            f"; with {e.partitions} partitions a label is late until each of them has heard of it,"
            " and with one the bounds of late labels would be smaller"
        )
    if e.voted:
        late += (
            "; they are about one expert drawn by its weight each time, and a vote may err up to"
            " twice as often as all of these together"
        )
    if oracle is None:
        return [
            late,
            (
                "nothing bounds the regret against the best local oracle: Theorem 3 needs Theorem 1"
                " of every learner, learners as the experts that are always heard, and no miss"
                " target, which overrules answers"
            ),
        ]
    return [late, "Theorem 3 needs labels on time"]


def _print_known(plan: "Plan") -> None:
    rows = table(
        "Error rate known to within one point, at all times, whatever the settings",
        "if it is about", "after labels", right=("if it is about", "after labels"),
    )  # fmt: skip
    for rate, labels in plan.labels_to_know_the_error.items():
        rows.add_row(percent(rate), f"{labels:,}")
    out.print(rows)
    for line in _miss_rates(plan):
        out.print(f"  {line}", highlight=False)


def _miss_rates(plan: "Plan") -> list[str]:
    from cli.plan_bounds import PATIENTS

    if not plan.miss_rates:
        return [
            (
                "no label has a miss target; with ensemble.miss_target = 0.05, say, each label's"
                " miss rate is held there on any stream, at the price of patients who are referred"
            )
        ]
    return [
        f"the miss rate of {label} is held at {m.target:.3g}: on any stream with labels on time it"
        f" is at most {100 * m.above:.2g} points above and {100 * m.below:.2g} below after"
        f" {PATIENTS:,} patients with that label; {_late(m.late)}"
        for label, m in plan.miss_rates.items()
    ]


def _late(above: dict[int, float]) -> str:
    """Say how far above its target a miss rate may be, by how many of its labels are late."""
    points = [f"{100 * gap:.2g} points where {late:,}" for late, gap in above.items()]
    points[0] += " of its labels come between a diagnosis and its own"
    return f"above by at most {', '.join(points)}"


def _print_curves(plan: "Plan") -> None:
    import numpy as np
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(min(out.width, 100), 22)
    lengths = np.log10(plan.lengths)
    for name, curve in plan.curves.items():
        figure.draw(figure.signal(lengths, np.log10(curve)).lines().label(name))
    figure.draw(figure.signal(lengths, lengths).lines().label("T itself: above it, vacuous"))
    figure.title("Regret bound over the number of patients T")
    for axis in ("x", "y"):
        decades = list(range(0, 13, 2))
        figure.ruler(axis).ticks(decades, [f"10^{decade}" for decade in decades])
    drawn = str(figure.build())
    out.file.write((drawn if out.is_terminal else plotext.uncolorize(drawn)) + "\n")


def _draw(plan: "Plan", file: Path) -> None:
    from settings.errors import InputError

    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError(
            "--plot needs matplotlib; install the extra: pip install 'hedged-bandits[experiments]'"
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, curve in plan.curves.items():
        axes.plot(plan.lengths, curve, label=name)
    axes.plot(plan.lengths, plan.lengths, "k--", label="T itself")
    axes.fill_between(plan.lengths, plan.lengths, max(plan.lengths), alpha=0.08, label="vacuous")
    axes.axvline(plan.T, color="grey", linewidth=0.8, label=f"T = {plan.T:,}")
    axes.set(xscale="log", yscale="log", xlabel="patients T", ylabel="regret bound")
    axes.legend()
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot {file}: {error}") from None


def _short(number: float) -> str:
    for limit, unit in ((1e6, ""), (1e9, " million"), (1e12, " billion"), (1e15, " trillion")):
        if number < limit:
            scaled = number / max(1.0, limit / 1e3) if unit else number
            return f"{scaled:,.0f}{unit}" if not unit else f"{scaled:,.3g}{unit}"
    return f"{number:.2g}"


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number /= 1024
    return f"{number:,.0f} TiB"
