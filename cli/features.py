"""`hb features`: learn the ranges and categories of features from a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.output import JsonOption, err, out, print_json, table
from cli.settings import SettingsOption
from learners.scores.wording import counted

if TYPE_CHECKING:
    from settings.proposing.refit import Change

group = typer.Typer(no_args_is_help=True, help="Fit features' ranges, means and categories.")
_BIG = 2_000_000
"""Size in bytes above which reading takes long enough to show a bar."""


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="features", rich_help_panel="Settings")


@group.callback()
def _group() -> None:
    """Make `hb features` a group even with one command."""


@group.command()
def fit(
    data: Annotated[
        Path, typer.Argument(metavar="DATA.CSV", help="A CSV file whose header names the features.")
    ],
    settings: SettingsOption = None,
    scale: Annotated[
        Literal["minmax", "zlog", "quantile"] | None,
        typer.Option(
            help="How to scale all numbers: `minmax` by range, `zlog` by z-score, `quantile` by"
            " rank.",
            show_default="each keeps its own",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would change; write nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fit ranges, means, knots and categories to DATA.CSV and write them into the settings file.

    The file's comments and layout stay as they are. Blank cells are skipped and counted. Known
    categories stay, new ones are added.

    Examples: `hb features fit patients.csv --dry-run`, `hb features fit patients.csv --scale zlog`.
    """
    from settings.loading import settings_path
    from settings.proposing.csv_file import CsvFile
    from settings.proposing.refit import refit

    file, source = settings_path(settings), CsvFile(data)
    with reading(source.size, f"reading {data.name}") as advance:
        changes = refit(file, source, scale, advance, write=not dry_run)
    if json:
        print_json({"file": str(file), "written": not dry_run, "features": _report(changes)})
        return
    _print(changes)
    count = sum(change.changed for change in changes)
    verb = "would change" if dry_run else "changed"
    rows = counted(changes[0].rows, "row", "rows")
    out.print(f"{file}: {count} of {len(changes)} features {verb}, from {rows}", highlight=False)


@contextmanager
def reading(size: int, title: str) -> Iterator[Callable[[int], None]]:
    """Show how much of a big file has been read; yields a function of the bytes read so far."""
    if size < _BIG or not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=err, transient=True) as bar:
        task = bar.add_task(title, total=size)
        yield lambda position: bar.update(task, completed=position)


def _report(changes: "list[Change]") -> list[dict[str, Any]]:
    return [
        {
            "learner": change.owner,
            "feature": change.feature,
            "changed": change.changed,
            "before": change.before,
            "after": change.after,
            "rows": change.rows,
            "blanks": change.blanks,
        }
        for change in changes
    ]


def _print(changes: "list[Change]") -> None:
    rows = table(
        "", "learner", "feature", "scale", "learned", "before", "blanks", right=("blanks",)
    )
    for change in changes:
        scale = (
            "categories" if "categories" in change.after else change.after.get("scale", "minmax")
        )
        before = _words(change.before) if change.changed else "the same"
        blanks = str(change.blanks or "")
        rows.add_row(change.owner, change.feature, scale, _words(change.after), before, blanks)
    out.print(rows)


def _words(numbers: dict[str, Any]) -> str:
    """Describe in a few words what is known about a feature.

    >>> _words({"scale": "zlog", "mean": 14.127292, "std": 3.524})
    'mean 14.1273, std 3.524'
    """
    match numbers:
        case {"low": low, "high": high}:
            return f"{low:g} to {high:g}"
        case {"mean": mean, "std": std}:
            return f"mean {mean:g}, std {std:g}"
        case {"knots": knots}:
            return f"{len(knots)} knots, {knots[0]:g} to {knots[-1]:g}"
        case {"categories": [_, *_] as categories}:
            return f"{len(categories)} categories"
    return "nothing"
