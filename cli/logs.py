"""`hb logs`: what the workers of `hb up` have written."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.logging_options import FollowOption, LinesOption, LogFormatOption
from cli.output import out
from cli.settings import SetOption, SettingsOption, load
from settings.errors import InputError

if TYPE_CHECKING:
    from agents.log_lines import LogLine

_COLOURS = ("cyan", "green", "magenta", "blue", "bright_cyan", "bright_green")
_LEVELS = {"warning": "yellow", "error": "bold red", "critical": "bold red"}


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(logs)


def logs(
    *,
    lines: LinesOption = 50,
    follow: FollowOption = False,
    role: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="Only this worker: `local:NAME` or `ensemble`."),
    ] = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    log_format: LogFormatOption = "text",
) -> None:
    """Print the end of the log of the workers that `hb up` runs on this machine.

    The broker's own log is `hb broker logs`.

    Examples: `hb logs`, `hb logs --follow --role ensemble`, `hb logs -n 1000 --log-format json`.
    """
    from agents.log_lines import LogFile

    loaded = load(settings, set_)
    file = LogFile(loaded.worker.state)
    if not file.path.exists():
        raise InputError(f"there is no log in {loaded.worker.state} yet; hb up writes it")
    show = line_printer(log_format)
    for line in file.last(lines, role):
        show(line)
    if follow:
        for line in file.follow():
            if role in (None, line.worker):
                show(line)


def line_printer(form: Literal["text", "json"]) -> "Callable[[LogLine], None]":
    """Return a function that prints lines of a log, each worker in its own colour."""
    from rich.text import Text

    colours: dict[str, str] = {}

    def show(line: "LogLine") -> None:
        if form == "json":
            out.print(line.json(), markup=False, highlight=False, soft_wrap=True)
            return
        colour = colours.setdefault(line.worker, _COLOURS[len(colours) % len(_COLOURS)])
        text = Text(line.plain())
        text.highlight_words([line.worker], colour)
        text.highlight_words([line.level], _LEVELS.get(line.level, "dim"))
        out.print(text, soft_wrap=True)

    return show
