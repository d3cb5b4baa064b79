"""`hb fuzz`: odd inputs for all that reads what others wrote; the code is in `bench.fuzz`."""

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
        typer.Option(min=1.0, help="How long; until Ctrl-C if not given.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the inputs of this seed.", show_default=False)
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; may be given again.", show_default=False),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write inputs that break something here.", show_default=False
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Try one input, kept before, on --target.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Give every decoder odd inputs: each must take them or refuse them with its own error.

    Readers of records, files of patients, the settings file, the client, stored state and models,
    changelogs, and the worker's pages. Exit code 1 if anything else happens.
    """
    need_clone("bench", "fuzz")
    interrupt_on_sigterm()
    import logging
    from random import SystemRandom

    from bench.fuzz.run import Finding, again
    from bench.fuzz.run import fuzz as run

    # Every refusal would be logged.
    logging.disable(logging.CRITICAL)

    def say(found: Finding) -> None:
        err.print(f"{found.target}: {found.what} at {found.where}", markup=False)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            name = f"{found.target} {found.what} {found.where}".replace(" ", "-")
            (keep / name.replace("/", "-")).write_bytes(found.data)

    if replay is not None:
        report = again(replay.read_bytes(), target or (), say)
    else:
        seed = SystemRandom().randrange(10**6) if seed is None else seed
        err.print(f"seed {seed}", highlight=False)
        report = run(seconds, seed, target or (), say)
    if json:
        print_json(report)
    else:
        shown = table("", "target", "inputs", right=("inputs",))
        for name, count in report["inputs"].items():
            shown.add_row(name, f"{count:,}")
        out.print(shown)
    if report["findings"]:
        raise typer.Exit(EXIT_FOUND)
