"""`hb bench`: speed, measured against peers in the same run. The work is in `experiments.bench`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cli.output import EXIT_FOUND, JsonOption, err, out, print_json, table

group = typer.Typer(no_args_is_help=True, help="Measure speed against peers, in the same run.")
Rounds = Annotated[int, typer.Option(min=1, help="How often each rival runs; its best run counts.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="bench", rich_help_panel="Development")


@group.command()
def core(rounds: Rounds = 5, as_json: JsonOption = False) -> None:
    """Decide and learn: batches of 2,000 against the paper's loop in plain Python."""
    from experiments.bench.core import run, steps

    with progress("core", steps(rounds)) as tick:
        report = run(rounds, tick=tick)
    show("Core", report, as_json)


@group.command()
def records(rounds: Rounds = 60, as_json: JsonOption = False) -> None:
    """Read and write records: ours, msgspec alone, and orjson with checks by hand."""
    from experiments.bench.records import run, steps

    with progress("records", steps(rounds)) as tick:
        report = run(rounds, tick)
    show("Records", report, as_json)


@group.command()
def engine(
    rounds: Rounds = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One short round.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Batches through Faust, exactly once, against other stream processors on one broker."""
    from experiments.bench.engine import run, steps

    rounds = 1 if quick else rounds
    with progress("engine", steps(rounds)) as tick:
        report = run(rounds, quick, tick)
    show("Engine", report, as_json)
    for name, reason in report["skipped"].items():
        err.print(f"left out: {name}: {reason}", markup=False, highlight=False)


@group.command()
def faults(
    seed: Annotated[int | None, typer.Option(help="Repeat the run of this seed.")] = None,
    short: Annotated[bool, typer.Option("--short", help="Fewer faults and records.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Exactly once under fire: workers and brokers are killed, paused and bounced."""
    from random import SystemRandom

    from experiments.bench.faults import run
    from experiments.bench.faults_schedule import FULL, SHORT

    seed = SystemRandom().randrange(10**6) if seed is None else seed
    report = run(SHORT if short else FULL, seed, lambda line: err.print(line, highlight=False))
    show("Faults", report, as_json)
    if any(report["figures"][name] for name in ("lost", "double", "differing")):
        raise typer.Exit(EXIT_FOUND)


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], object]]:
    """Show a progress bar on standard error; call what it yields after each of the steps."""
    from rich.progress import Progress

    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)


def show(title: str, report: dict[str, Any], as_json: bool) -> None:
    """Print a benchmark's report: one JSON object, or a table of figures and one of ratios."""
    if as_json:
        print_json(report)
        return
    settings = ", ".join(f"{name} {value}" for name, value in report["settings"].items())
    for heading, part in ((f"{title} ({settings})", "figures"), ("Ours over theirs", "ratios")):
        made = table(heading, "what", "value", right=("value",))
        for name, value in report[part].items():
            made.add_row(name, f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}")
        out.print(made)
