"""`hb bench`: speed and faults, measured beside peers in the same run; the code is in `bench`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.dev import need_clone
from cli.output import EXIT_FOUND, JsonOption, err, interrupt_on_sigterm, out, print_json, table

group = typer.Typer(no_args_is_help=True)
Rounds = Annotated[
    int, typer.Option(min=1, help="How often each contender runs; its best run counts.")
]
Seed = Annotated[int, typer.Option(help="Seed for the patients.")]
Quick = Annotated[bool, typer.Option("--quick", help="One short round.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="bench", rich_help_panel="Development")


@group.callback()
def _need_benchmarks() -> None:
    """Measure speed beside peers in the same run, and what faults do."""
    need_clone("bench", "bench")
    interrupt_on_sigterm()


@group.command()
def core(rounds: Rounds = 5, as_json: JsonOption = False) -> None:
    """Decide and learn: batches of 2,000 against the paper's loop in plain Python.

    Example: `hb bench core`.
    """
    from bench.core import run, steps

    with progress("core", steps(rounds)) as tick:
        report = run(rounds, tick=tick)
    show("Core", report, as_json)


@group.command()
def records(rounds: Rounds = 60, as_json: JsonOption = False) -> None:
    """Read and write records: ours, msgspec alone, and orjson with hand-written checks.

    Example: `hb bench records`.
    """
    from bench.records import run, steps

    with progress("records", steps(rounds)) as tick:
        report = run(rounds, tick)
    show("Records", report, as_json)


@group.command()
def agents(
    *,
    rounds: Rounds = 5,
    quick: Quick = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Another checkout to measure in turn, such as an earlier one."
        ),
    ] = None,
    seed: Seed = 2017,
    as_json: JsonOption = False,
) -> None:
    """What a patient costs the agents in processor time, beside another checkout.

    Example: `git worktree add ../earlier HEAD~20`, then `hb bench agents --against ../earlier`.
    """
    from bench.agents import run, steps

    rounds = 1 if quick else rounds
    with progress("agents", steps(rounds, against)) as tick:
        report = run(rounds, quick, against, seed, tick)
    show("Agents", report, as_json)


@group.command()
def engine(
    rounds: Rounds = 3,
    quick: Quick = False,
    as_json: JsonOption = False,
) -> None:
    """Batches through Faust, exactly once, against other stream processors on one broker.

    Example: `hb bench engine --quick`.
    """
    from bench.engine.benchmark import run, steps

    rounds = 1 if quick else rounds
    with progress("engine", steps(rounds)) as tick:
        report = run(rounds, quick, tick)
    show("Engine", report, as_json)
    for name, reason in report["skipped"].items():
        err.print(f"left out: {name}: {reason}", markup=False, highlight=False)


@group.command()
def pipeline(
    *,
    rounds: Rounds = 3,
    quick: Quick = False,
    watching: Annotated[
        bool,
        typer.Option("--watching", help="Also measure what reading metrics and console costs."),
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure", help="Also run ours on a broker with TLS, log-in and access control."
        ),
    ] = False,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """The whole pipeline, from patients to learning, against a raw relay and plain Faust agents.

    Examples: `hb bench pipeline --quick`, `hb bench pipeline --watching`.
    """
    from bench.pipeline.benchmark import run, steps

    rounds = 1 if quick else rounds
    with progress("pipeline", steps(rounds, quick, watching, secure)) as tick:
        report = run(rounds, quick, watching, seed, tick, secure=secure)
    show("Pipeline", report, as_json)


@group.command()
def latency(
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to measure.")] = 30.0,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Time from publishing a patient to reading the diagnosis, at 100 patients per second.

    Example: `hb bench latency --seconds 60`.
    """
    from bench.latency import run, steps

    with progress("latency", steps(seconds)) as tick:
        report = run(seconds, seed, tick)
    show("Latency", report, as_json)


@group.command()
def publish(
    patients: Annotated[int, typer.Option(min=1, help="How many patients to publish.")] = 5000,
    rounds: Rounds = 3,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Patients published per second with the Python client, beside its Kafka library alone.

    Example: `hb bench publish --patients 1000`.
    """
    from bench.publish import run

    with progress("publish", rounds) as tick:
        report = run(patients, rounds, seed, tick)
    show("Publish", report, as_json)


@group.command()
def pending(
    rounds: Rounds = 7,
    quick: Annotated[
        bool, typer.Option("--quick", help="Let a hundred thousand wait, not a million.")
    ] = False,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Cost of a patient while a thousand others wait for labels, and while a million do.

    Example: `hb bench pending --quick`.
    """
    from bench.pending import MANY, run, steps

    with progress("pending", steps(rounds)) as tick:
        report = run(rounds, seed, tick, MANY // 10 if quick else MANY)
    show("Pending", report, as_json)


@group.command()
def teach(
    patients: Annotated[int, typer.Option(min=100, help="How many past patients.")] = 2_000,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Teach history at the pace of learning, all at once, one by one, and as a backlog.

    Example: `hb bench teach --patients 500`.
    """
    from bench.teaching import run, steps

    with progress("teach", steps()) as tick:
        report = run(patients, seed, tick)
    show("Teaching", report, as_json)


@group.command()
def faults(
    *,
    seed: Annotated[int | None, typer.Option(help="Repeat the run of this seed.")] = None,
    short: Annotated[bool, typer.Option("--short", help="Fewer faults and records.")] = False,
    patients: Annotated[
        bool, typer.Option("--pipeline", help="Use the whole pipeline, and audit it at the end.")
    ] = False,
    network: Annotated[
        bool,
        typer.Option("--network", help="Also hold, delay, lose and cut off network frames."),
    ] = False,
    request_timeout: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            help="With --network: how many seconds workers wait for an answer; frames are held for"
            " longer. 30, the settings' default, or 3 with --short.",
        ),
    ] = None,
    disk: Annotated[
        bool,
        typer.Option("--disk", help="Also damage the state folders of killed workers."),
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Use brokers with TLS, log-in and access control; not with --network, which has"
            " to see the frames.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=1, help="Run this many seeds, one after another on one cluster.")
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Exactly once under fire: workers and brokers are killed, paused and bounced.

    Examples: `hb bench faults --short`, `hb bench faults --pipeline --seed 11`.
    """
    from random import SystemRandom

    from bench.faults import fault_plan as plans
    from bench.faults.seeds import EXACT, run_seeds

    if patients:
        from bench.faults.pipeline import run

        plan = plans.PIPELINE_SHORT if short else plans.PIPELINE
    else:
        from bench.faults.engine import run

        plan = plans.SHORT if short else plans.FULL
    if network:
        plan = plan.with_network(request_timeout or (plans.HASTY if short else plans.PATIENT))
    if disk:
        plan = plan.with_disk()
    if secure:
        if network:
            raise typer.BadParameter("--secure cannot be combined with --network: TLS hides frames")
        plan = plan.with_security()
    seed = SystemRandom().randrange(10**6) if seed is None else seed
    say = lambda line: err.print(line, highlight=False, markup=False)  # noqa: E731
    if seeds > 1:
        report = run_seeds(run, plan, range(seed, seed + seeds), say)
    else:
        report = run(plan, seed, say)
    show("Faults", report, as_json)
    for finding in report.get("findings", ()):
        err.print(f"{finding['kind']}: {finding['what']}, {finding['where']}: {finding['times']}")
    if any(report["figures"].get(name) for name in (*EXACT, "unfinished")):
        raise typer.Exit(EXIT_FOUND)


@group.command()
def versions(
    kafka: Annotated[
        list[str] | None,
        typer.Option(metavar="VERSION", help="Only this one, such as 3.9; may be repeated."),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="On brokers with TLS, log-ins and access control.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed for the faults and the records.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """The short fault plans, of the engine and of the pipeline, on every Kafka that is pinned.

    Example: `hb bench versions --kafka 3.9`.
    """
    from bench.versions import run

    report = run(
        kafka or (), seed, secure, lambda line: err.print(line, highlight=False, markup=False)
    )
    if as_json:
        print_json(report)
    else:
        rows = report["versions"]
        outcomes = table("Versions of Kafka", *max(rows, key=len))
        for row in rows:
            outcomes.add_row(*map(str, row.values()))
        out.print(outcomes)
    if any(report["figures"].values()):
        raise typer.Exit(EXIT_FOUND)


@group.command()
def soak(
    minutes: Annotated[float, typer.Option(min=1.0, help="How long to run.")] = 30.0,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Steady load with kills, bounces, odd records and a rolling restart: does anything grow?

    Example: `hb bench soak --minutes 10`.
    """
    from bench.faults.seeds import EXACT
    from bench.soak.soak import run

    report = run(minutes, seed, lambda line: err.print(line, highlight=False, markup=False))
    show("Soak", report, as_json)
    if not as_json:
        _plot(report["curves"])
    for finding in report["findings"]:
        err.print(f"{finding['kind']}: {finding['what']}, {finding['where']}: {finding['times']}")
    if any(report["figures"][name] for name in EXACT):
        raise typer.Exit(EXIT_FOUND)


def _plot(curves: dict[str, list[float]]) -> None:
    """Draw each curve over the minutes of the run."""
    import plotext

    minutes = [second / 60 for second in curves["seconds"]]
    for name, values in curves.items():
        if name == "seconds":
            continue
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plot_size(80, 12)
        plotext.title(f"{name} over minutes")
        points = [(x, y) for x, y in zip(minutes, values, strict=True) if y == y]  # noqa: PLR0124
        plotext.plot([x for x, _ in points], [y for _, y in points])
        out.print(plotext.build(), markup=False, highlight=False)


@group.command()
def hostile(
    rounds: Rounds = 2,
    short: Annotated[bool, typer.Option("--short", help="Fewer patients and records.")] = False,
    seed: Seed = 1,
    as_json: JsonOption = False,
) -> None:
    """Odd records of every kind on every topic, sent by three clients while good patients flow.

    Example: `hb bench hostile --short`.
    """
    from bench.hostile.benchmark import SHORT, Size, run

    report = run(SHORT if short else Size(), seed, rounds, err.print)
    show("Hostile", report, as_json)
    for kind, times in report["unaccounted"].items():
        err.print(f"unaccounted: {kind}: {times}", markup=False, highlight=False)
    figures = report["figures"]
    if figures["diagnosed"] < figures["good"] or any(
        figures[name] for name in ("unaccounted", "tasks_failed", "restarts")
    ):
        raise typer.Exit(EXIT_FOUND)


@contextmanager
def progress(title: str, steps: int) -> Iterator[Callable[[], object]]:
    """Show a progress bar on standard error; call what it yields after each of the steps."""
    from rich.progress import Progress

    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(title, total=steps)
        yield lambda: bar.advance(task)


def show(title: str, report: dict[str, Any], as_json: bool) -> None:
    """Print a benchmark's report: one JSON object, or a table of figures and one of ratios."""
    if as_json:
        print_json(report)
        return
    settings = ", ".join(f"{name} {value}" for name, value in report["settings"].items())
    for heading, part in ((f"{title} ({settings})", "figures"), ("Ours over theirs", "ratios")):
        if not report[part]:
            continue
        rows = table(heading, "what", "value", right=("value",))
        for name, value in report[part].items():
            rows.add_row(name, f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}")
        out.print(rows)
