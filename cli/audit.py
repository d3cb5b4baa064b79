"""`hb audit`: is the live state what the topics imply?"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import EXIT_FOUND, JsonOption, err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from audit import Report
    from audit.recording.reader import Progress


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Monitoring")(audit)


MetricsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="URL",
        help="Also check the metrics that the worker at this address serves; may be given"
        " more than once.",
    ),
]


def audit(
    settings: SettingsOption = None,
    set_: SetOption = None,
    metrics: MetricsOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute every table, loss and count from the topics, and compare them with the live state.

    Workers may keep running: they are not disturbed, and records in flight are left out. The exit
    code is 1 if anything was lost, doubled or differs.

    Examples: `hb audit`, `hb audit --metrics http://127.0.0.1:6066`.
    """
    from audit import audit as run

    with reading(visible=not json) as progress:
        report = asyncio.run(run(load(settings, set_), progress, metrics or ()))
    if json:
        print_json(report.report())
    else:
        _print(report)
    if not report.findings.clean:
        sys.exit(EXIT_FOUND)


@contextmanager
def reading(*, visible: bool) -> Iterator["Progress"]:
    """Yield a function that reports the progress of reading: a bar, on a terminal only."""
    from audit.recording.reader import silent

    if not (visible and err.is_terminal):
        yield silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("reading {task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(source: str, count: int, total: int) -> None:
            bars.update(task, description=source, completed=count, total=total)

        yield show


def _print(report: "Report") -> None:
    figures = report.figures()
    counts = table("What the topics hold", "what", "number", right=("number",))
    for name, number in report.findings.counts.items():
        if number or "_" not in name:
            counts.add_row(name.replace("_", " "), f"{number:,}")
    out.print(counts)
    columns = "table", "values", "differing", ""
    tables = table("State compared with topics", *columns, right=("values", "differing"))
    for name, check in report.findings.tables.items():
        style = "red" if check.differing else "yellow" if check.note else None
        tables.add_row(name, f"{check.values:,}", f"{check.differing:,}", check.note, style=style)
    out.print(tables)
    _print_cuts(report)
    for finding in report.findings.list():
        out.print(
            f"[red]{finding.kind}[/red]: {finding.times:,} {finding.what} at {finding.where}",
            highlight=False,
        )
    for note in report.findings.notes:
        out.print(note, style="yellow", highlight=False)
    outcome = ", ".join(f"{figures[name]:,} {name}" for name in ("lost", "double", "differing"))
    out.print(outcome, style="green" if report.findings.clean else "bold red", highlight=False)


def _print_cuts(report: "Report") -> None:
    """Print what retention has removed."""
    for cut in report.cuts:
        place = f"{cut['topic']}/{cut['partition']}"
        out.print(f"  {place} begins at offset {cut['offset']:,}", highlight=False)
    if report.vouched_from is not None:
        since = datetime.fromtimestamp(report.vouched_from / 1000, UTC)
        text = f"the audit covers patients from {since:%Y-%m-%d %H:%M:%S} UTC"
        out.print(text, style="yellow", highlight=False)
