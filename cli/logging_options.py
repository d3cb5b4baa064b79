"""The options of commands that write a log."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from agents.worker_log import LogStyle

LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="Lines for people, or one JSON object per line."),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Log details, and what Faust says of its start-up."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")]


def log_style(form: Literal["text", "json"], *, verbose: bool, quiet: bool) -> "LogStyle":
    """Return what the options ask for."""
    from agents.worker_log import LogStyle

    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet exclude each other")
    return LogStyle(form, "verbose" if verbose else "quiet" if quiet else "normal")
