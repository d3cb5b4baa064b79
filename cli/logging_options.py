"""The options of commands that write or show a log."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from agents.worker_log import LogStyle

LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="Text for people, or one JSON object per line."),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Log details, including Faust's start-up messages."),
]
LinesOption = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines to show.")]
FollowOption = Annotated[
    bool, typer.Option("--follow", "-f", help="Keep printing as the log grows, until Ctrl-C.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")]


def log_style(form: Literal["text", "json"], *, verbose: bool, quiet: bool) -> "LogStyle":
    """Return what the options ask for."""
    from agents.worker_log import LogStyle

    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet exclude each other")
    return LogStyle(form, "verbose" if verbose else "quiet" if quiet else "normal")
