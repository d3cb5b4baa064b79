"""`hb evaluate`: try an ensemble on a file, before there is a broker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.features import reading
from cli.init import (
    IdOption,
    LabelOption,
    LearnerOption,
    LearnersOption,
    PositiveOption,
    SubjectOption,
    show_data,
)
from cli.output import JsonOption, err, out, print_json, table
from learners.scores.wording import RATES, counted, give_or_take

if TYPE_CHECKING:
    from audit.evaluation.evaluate import Evaluation

_ROWS = 2000


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(evaluate)


def evaluate(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="DATA.CSV", help="A CSV file; its header names the features.")
    ],
    label: LabelOption = None,
    positive: PositiveOption = None,
    id_column: IdOption = None,
    subject: SubjectOption = None,
    learner: LearnerOption = None,
    learners: LearnersOption = None,
    label_delay: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Each label arrives N patients later."),
    ] = 0,
    limit: Annotated[int, typer.Option(min=1, help="How many rows of the file to use.")] = _ROWS,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page with figures.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Report on a data file, and try the proposed settings and a few others on it.

    Each patient is diagnosed before its label is known, by the same learners as in the pipeline.
    The majority class and a logistic regression that sees all features are there for comparison. It
    needs no broker, and writes nothing except the page of `--html`.

    Examples: `hb evaluate patients.csv`, or `hb evaluate patients.csv --label outcome --positive
    ill --label-delay 100 --html report.html`.
    """
    from audit.evaluation.evaluate import evaluate as evaluated
    from audit.evaluation.page import page
    from settings.proposing.from_csv import Wishes, propose
    from settings.proposing.refit import replace_text

    if learner and learners:
        raise typer.BadParameter("--learner and --learners cannot be combined")
    wishes = Wishes(label, positive, id_column, learners, learner or (), subject=subject)
    with reading(file.stat().st_size if file.exists() else 0, f"reading {file.name}") as advance:
        proposal = propose(file, wishes, advance)
    if not json:
        show_data(proposal)
    with _shown() as progress:
        result = evaluated(file, proposal, delay=label_delay, limit=limit, progress=progress)
    if html is not None:
        replace_text(html, page(result))
    if json:
        print_json(result.report())
        return
    _show(result)
    if html is not None:
        out.print(f"wrote {html}", markup=False, soft_wrap=True)


@contextmanager
def _shown() -> Iterator[Callable[[str, int, int], None]]:
    """Show which pass is under way and how far; on a terminal only."""
    if not err.is_terminal:
        yield lambda _name, _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda name, count, total: bar.update(
            task, completed=count / max(total, 1), description=name
        )


def _show(result: "Evaluation") -> None:
    numbers = (*RATES.values(), "useful after")
    when = f"labels {result.delay:,} patients late" if result.delay else "each label at once"
    results = table(f"{result.used:,} patients, {when}", "", *numbers, right=numbers)
    for tried in result.passes():
        rates = tried.outcome.rates()
        useful = f"{tried.useful:,} labels" if tried.useful else "-"
        shares = [give_or_take(rates[r.upper()], rates[f"{r.upper()}_se"]) for r in RATES]
        results.add_row(tried.name, *shares, useful)
    out.print(results)
    if result.again:
        out.print(
            counted(result.again, "row is a later visit", "rows are later visits")
            + " of people seen before: learned from, but not scored",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
    if result.refused:
        out.print(f"{counted(result.refused, 'row', 'rows')} could not be used", markup=False)
    out.print(
        f"{result.best.name}, against the logistic regression: {_compared(result)}."
        " To write these settings:",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    out.print(f"  {result.command}", markup=False, highlight=False, soft_wrap=True)


def _compared(result: "Evaluation") -> str:
    """Say how the best settings' rates compare with the logistic regression's."""
    from audit.evaluation.outcome import leads

    differences = leads(result.best.outcome, result.logistic.outcome)
    parts = []
    for name, word in RATES.items():
        gain, error = differences[name.upper()]
        if gain is not None and error is not None:
            sides = "lower" if gain >= 0 else "higher"
            parts.append(f"{word} {give_or_take(abs(gain), error, 'points')} {sides}")
    return ", ".join(parts)
