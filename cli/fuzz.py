"""`hb fuzz`: feeds odd inputs to everything that parses data from outside (`bench.fuzz`)."""

from pathlib import Path
from typing import Annotated

import typer

from cli.dev import need_clone
from cli.output import EXIT_FOUND, JsonOption, err, interrupt_on_sigterm, out, print_json, table


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Development")(fuzz)


def fuzz(
    *,
    seconds: Annotated[
        float | None,
        typer.Option(min=1.0, help="How long to run.  [default: until Ctrl-C]", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the inputs of this seed.", show_default=False)
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this decoder; may be given more than once.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write inputs that break something to DIR.", show_default=False
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Try one kept input on --target.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Feed odd inputs to every decoder: each must accept them, or refuse them with its own error.

    Decoders are the readers of records, patient files, the settings file, the client, stored state
    and models, changelogs, and the worker's pages. The exit code is 1 if anything else happens.

    Examples: `hb fuzz --seconds 60`, `hb fuzz --seed 7 --keep broken/`.
    """
    need_clone("bench", "fuzz")
    interrupt_on_sigterm()
    import logging
    from random import SystemRandom

    from bench.fuzz.fuzzing import Finding, again
    from bench.fuzz.fuzzing import fuzz as run

    # Every refusal would be logged.
    logging.disable(logging.CRITICAL)

    def say(finding: Finding) -> None:
        err.print(f"{finding.target}: {finding.what} at {finding.where}", markup=False)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            name = f"{finding.target} {finding.what} {finding.where}".replace(" ", "-")
            (keep / name.replace("/", "-")).write_bytes(finding.data)

    if replay is not None:
        report = again(replay.read_bytes(), target or (), say)
    else:
        seed = SystemRandom().randrange(10**6) if seed is None else seed
        err.print(f"seed {seed}", highlight=False)
        report = run(seconds, seed, target or (), say)
    if json:
        print_json(report)
    else:
        counts = table("", "target", "inputs", right=("inputs",))
        for name, count in report["inputs"].items():
            counts.add_row(name, f"{count:,}")
        out.print(counts)
    if report["findings"]:
        raise typer.Exit(EXIT_FOUND)
