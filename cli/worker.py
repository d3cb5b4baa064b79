"""`hb worker` and `hb up`: run the agents."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import err, interrupt_on_sigterm, out
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from agents.supervisor import Line
    from settings.model import Settings

RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="`local:NAME` or `ensemble`; may be given again.  [default: all roles]",
        show_default=False,
    ),
]
_POLL = 0.2
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_red")


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.command(rich_help_panel="Running")(worker)
    app.command(rich_help_panel="Running")(up)


def worker(
    settings: SettingsOption = None, set_: SetOption = None, role: RoleOption = None
) -> None:
    """Run learners: all of them, or those of `--role`.

    Several workers share the partitions of their roles. Ctrl-C commits what is processed, leaves
    the group and ends.
    """
    from agents.roles import specs
    from agents.worker_process import serve

    loaded = load(settings, set_)
    specs(loaded, role or ())
    serve(loaded, role or ())


def up(settings: SettingsOption = None, set_: SetOption = None) -> None:
    """Start the broker (if it is the embedded one), the topics, and one worker per role.

    Workers that die are restarted. Ctrl-C or SIGTERM stops them, and they stop too if this process
    is killed; the broker goes on: `hb broker down`.
    """
    from agents.roles import roles
    from agents.supervisor import Supervisor, sole_supervisor
    from agents.worker_process import command
    from settings.loading import settings_path

    loaded = load(settings, set_)
    file = settings_path(settings).absolute()
    interrupt_on_sigterm()
    with sole_supervisor(loaded.worker.state):
        _start_broker(loaded)
        names = roles(loaded)

        def worker_command(role: str) -> Sequence[str]:
            return command(file, set_ or (), [role], supervised=True)

        with Supervisor(names, worker_command, _printer(names)):
            try:
                _tell_console(loaded.worker.state)
                threading.Event().wait()
            except KeyboardInterrupt:
                err.print("stopping", highlight=False)


def _start_broker(settings: "Settings") -> None:
    """Start the embedded broker if no other is configured, and create the topics.

    Settings that would misread the state are refused here; otherwise the workers would exit one
    by one.
    """
    from agents.stored_state import check_stored
    from cli.download_progress import shown_progress
    from cli.topics import create_missing

    if not settings.broker.bootstrap:
        from streams.broker import EmbeddedBroker

        with shown_progress() as progress:
            broker = EmbeddedBroker(progress=progress)
            broker.up()
        err.print(f"broker at {broker.address}", highlight=False)
    asyncio.run(check_stored(settings))
    asyncio.run(create_missing(settings))


def _printer(roles: Sequence[str]) -> "Line":
    """Return a function that prints the workers' lines, each role in its own colour."""
    colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(roles)}
    width = max(map(len, roles))
    lock = threading.Lock()

    def say(role: str, text: str) -> None:
        with lock:
            out.print(f"[{colour[role]}]{role:{width}}[/] ", end="", highlight=False)
            out.print(text, markup=False, highlight=False, soft_wrap=True)

    return say


def _tell_console(state: Path) -> None:
    """Wait until a worker serves the console, and print its address."""
    from agents.worker_pages import worker_pages

    pause = threading.Event()
    while not (pages := [page for page in worker_pages(state) if page.console]):
        pause.wait(_POLL)
    text = f"console: {pages[0].address}  (any worker's shows the whole system)"
    err.print(text, highlight=False, soft_wrap=True)
