"""`hb worker` and `hb up`: run the agents."""

import asyncio
import re
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import err, out
from cli.settings import SetOption, SettingsOption, load
from cli.worker_log import log_to_terminal

if TYPE_CHECKING:
    from streams.faust.app import EngineApp

RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="`local:NAME` or `ensemble`; may be given again.  [default: all roles]",
        show_default=False,
    ),
]
_CONSOLE = re.compile(r"worker runs .*, console at (http://\S+)")
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
    from agents.worker import run

    loaded = load(settings, set_)
    specs(loaded, role or ())
    log_to_terminal()
    pages = "console" if loaded.worker.console else "pages"
    work = run(loaded, role or (), started=lambda app: _say_started(app, pages))
    try:
        import uvloop
    except ImportError:  # not made for this system
        asyncio.run(work)
    else:
        uvloop.run(work)


def _say_started(app: "EngineApp", pages: str) -> None:
    address = getattr(app.web, "address", None)
    where = f", {pages} at {shown_address(*address)}" if address else ""
    agents = ", ".join(app.engine.specs)
    sys.stdout.write(f"worker runs {agents}{where}\n")
    sys.stdout.flush()


def shown_address(host: str, port: int) -> str:
    """Return what to type into a browser on this machine.

    >>> shown_address("127.0.0.1", 6066), shown_address("0.0.0.0", 80), shown_address("::", 80)
    ('http://127.0.0.1:6066', 'http://127.0.0.1:80', 'http://[::1]:80')
    """
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not to listen on
    host = everywhere.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def up(settings: SettingsOption = None, set_: SetOption = None) -> None:
    """Start the broker (if it is the embedded one), the topics, and one worker per role.

    Workers that die are started again. Ctrl-C stops them; the broker goes on: `hb broker down`.
    """
    from agents.roles import roles
    from agents.supervisor import Supervisor, worker_command
    from cli.download_progress import shown_progress
    from cli.topics import create_missing
    from settings.loading import settings_path

    loaded = load(settings, set_)
    file = settings_path(settings).absolute()
    if not loaded.broker.bootstrap:
        from streams.broker import EmbeddedBroker

        with shown_progress() as progress:
            broker = EmbeddedBroker(progress=progress)
            broker.up()
        err.print(f"broker at {broker.address}", highlight=False)
    asyncio.run(create_missing(loaded))
    names = roles(loaded)
    colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    width = max(map(len, names))
    lock = threading.Lock()
    told: list[str] = []

    def say(role: str, text: str) -> None:
        with lock:
            out.print(f"[{colour[role]}]{role:{width}}[/] ", end="", highlight=False)
            out.print(text, markup=False, highlight=False, soft_wrap=True)
            found = _CONSOLE.search(text)
            if found and not told:
                told.append(found[1])
                err.print(
                    f"console: {found[1]}  (any worker's shows the whole system)",
                    highlight=False,
                    soft_wrap=True,
                )

    with Supervisor(names, lambda role: worker_command(str(file), set_ or (), role), say):
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            err.print("stopping", highlight=False)
