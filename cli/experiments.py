"""`hb experiments`: the evidence, from one command; the code is in `experiments`."""

from dataclasses import asdict
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.dev import PASS_ON, in_clone, need_clone
from cli.experiment_progress import bars
from cli.output import JsonOption, err, out, print_json, table

if TYPE_CHECKING:
    from experiments.catalogue import Options
    from experiments.report.result import Result, Table
    from experiments.report.result_store import Store

group = typer.Typer(
    no_args_is_help=True,
    help="Reproduce the paper's evaluation, and go beyond it; everything is seeded.",
)
Runs = Annotated[int, typer.Option(min=2, help="Independent runs; the paper has 50.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed for everything that is random.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few, short runs: does it work?")]
QUICK_RUNS = 4


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`: one per experiment, or in an install without them a sentence."""
    if in_clone("experiments"):
        _register_each()
        app.add_typer(group, name="experiments", rich_help_panel="Evidence")
    else:
        app.command("experiments", context_settings=PASS_ON, rich_help_panel="Evidence")(_missing)


def _missing() -> None:
    """Reproduce the paper's evaluation, in a clone of the repository."""
    need_clone("experiments", "experiments")


@group.command(name="list")
def list_(as_json: JsonOption = False) -> None:
    """List the experiments and how long they take.

    Example: `hb experiments list`.
    """
    from experiments.catalogue import CATALOGUE

    if as_json:
        print_json(
            {"experiments": {name: asdict(experiment) for name, experiment in CATALOGUE.items()}}
        )
        return
    rows = table("Experiments", "name", "shows", "about", right=("about",))
    for name, experiment in CATALOGUE.items():
        rows.add_row(name, experiment.summary, f"{experiment.seconds:.0f} s")
    out.print(rows)


@group.command(name="all")
def all_(  # noqa: PLR0917 - options, which nobody passes by position
    runs: Runs = 50,
    seed: Seed = 2017,
    quick: Quick = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this one; may be given more than once."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run again even what has been stored.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where to write results and report.  [default: docs/results; with --quick a"
            " temporary folder]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run all experiments and write the report: one HTML page, and Markdown with images.

    Finished experiments are kept in DIR; an interrupted run continues where it stopped.

    Examples: `hb experiments all --quick`, `hb experiments all --only table1 --out /tmp/results`.
    """
    from experiments.catalogue import CATALOGUE
    from experiments.report.result_store import Store
    from experiments.report.write import write_report

    folder = folder or (Path(gettempdir(), "hb-quick-results") if quick else Path("docs/results"))
    options = _options(runs, seed, quick)
    results = _collect(_known(only or list(CATALOGUE)), Store(folder / "json"), options, fresh)
    every = {name: Store(folder / "json").latest(name) for name in CATALOGUE}
    paths = write_report({n: r for n, r in every.items() if r is not None}, folder)
    if as_json:
        print_json({"figures": {n: r.figures for n, r in results.items() if r is not None}})
        return
    for path in paths:
        err.print(f"wrote {path}", highlight=False)


def _collect(
    names: list[str], store: "Store", options: "Options", fresh: bool
) -> "dict[str, Result | None]":
    """Return the results, running those that are not stored yet."""
    from experiments.runner import run_each

    results = {name: _stored(store, name, options, fresh) for name in names}
    todo = [name for name, result in results.items() if result is None]
    with bars(todo, options) as progress:

        def done(name: str, result: "Result") -> None:
            store.save(name, _key(name, options), result)
            results[name] = result
            progress.done(name, result)

        run_each(todo, options, ticked=progress.tick, done=done)
    return results


def _one(name: str) -> Any:
    def command(
        runs: Runs = 50, seed: Seed = 2017, quick: Quick = False, as_json: JsonOption = False
    ) -> None:
        options = _options(runs, seed, quick)
        from experiments.runner import run_one

        with bars([name], options) as progress:
            result = run_one(name, options, lambda: progress.tick(name))
        if as_json:
            print_json(
                {"figures": result.figures, "settings": result.settings, "notes": result.notes,
                 "seconds": result.seconds}
            )  # fmt: skip
        else:
            show(result)

    return command


def _register_each() -> None:
    from experiments.catalogue import CATALOGUE

    for name, experiment in CATALOGUE.items():
        text = f"{experiment.summary}.\n\nExample: `hb experiments {name} --quick`."
        group.command(name=name, help=text)(_one(name))


def _options(runs: int, seed: int, quick: bool) -> "Options":
    from experiments.catalogue import Options

    return Options(min(runs, QUICK_RUNS) if quick else runs, seed, quick)


def _known(names: list[str]) -> list[str]:
    from experiments.catalogue import CATALOGUE
    from settings.errors import InputError

    for name in names:
        if name not in CATALOGUE:
            raise InputError(f"there is no experiment {name}; there are {', '.join(CATALOGUE)}")
    return names


def _key(name: str, options: "Options") -> dict[str, Any]:
    from experiments.catalogue import CATALOGUE
    from experiments.report.result_store import code_digest

    return {**asdict(options), "code": code_digest(CATALOGUE[name].function.split(":")[0])}


def _stored(store: Any, name: str, options: "Options", fresh: bool) -> "Result | None":
    result: Result | None = None if fresh else store.load(name, _key(name, options))
    return result


def show(result: "Result") -> None:
    """Print a result for people."""
    out.print(f"[bold]{result.title}[/bold]  ({result.seconds:.0f} s)", highlight=False)
    for result_table in result.tables:
        out.print(_rich(result_table))
    for note in result.notes:
        out.print(f"  - {note}", highlight=False, markup=False)


def _rich(result_table: "Table") -> Any:
    from experiments.report.markdown import cell

    numbers = tuple(
        column
        for k, column in enumerate(result_table.columns)
        if all(not isinstance(row[k], str) for row in result_table.rows)
    )
    rows = table(result_table.title, *result_table.columns, right=numbers)
    for row in result_table.rows:
        rows.add_row(*(cell(value, result_table.digits) for value in row))
    return rows
