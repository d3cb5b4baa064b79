"""The root of the `hb` command: wiring only, each group of commands lives in its own module."""

from typing import Annotated

import typer

from cli import (
    acls,
    audit,
    bench,
    broker,
    console,
    deadletters,
    dev,
    diagnoses,
    diagnosis,
    doctor,
    evaluate,
    experiments,
    features,
    forget,
    fuzz,
    init,
    label,
    logs,
    plan,
    produce,
    replay,
    schema,
    screenshots,
    settings,
    status,
    supply_chain,
    teach,
    topics,
    worker,
)
from cli.demo import command as demo
from cli.help_texts import show_plain_types
from cli.output import guarded

show_plain_types()
app = typer.Typer(
    name="hb",
    help="Adaptive ensemble diagnosis with confidence bounds on Kafka streams.",
    epilog="Exit codes: 0 done, 1 a check found something, 2 wrong usage, 3 bad input or settings, "
    "4 the broker cannot be used, 5 a worker crashed, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo.register(app)
init.register(app)
evaluate.register(app)
settings.register(app)
features.register(app)
plan.register(app)
schema.register(app)
worker.register(app)
status.register(app)
doctor.register(app)
console.register(app)
logs.register(app)
broker.register(app)
topics.register(app)
acls.register(app)
audit.register(app)
replay.register(app)
teach.register(app)
produce.register(app)
label.register(app)
diagnoses.register(app)
diagnosis.register(app)
forget.register(app)
deadletters.register(app)
experiments.register(app)
bench.register(app)
fuzz.register(app)
screenshots.register(app)
dev.register(app)
supply_chain.register(app)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"hb {version('hedged-bandits')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Hold the options that belong to no command."""


def main() -> None:
    """Run `hb`; known errors become one line on standard error and a meaningful exit code."""
    with guarded():
        app()
