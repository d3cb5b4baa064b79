"""`hb worker` and `hb up`: run the agents."""

import asyncio
import logging
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import err, out
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from streams.app import EngineApp

RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="`local:NAME` or `ensemble`; may be given again.  [default: all roles]",
        show_default=False,
    ),
]
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
    from agents.worker import run, specs

    loaded = load(settings, set_)
    specs(loaded, role or ())
    logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(name)s: %(message)s")
    for noisy in ("faust", "mode", "aiokafka", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    asyncio.run(run(loaded, role or (), started=_say_started))


def _say_started(app: "EngineApp") -> None:
    address = getattr(app.web, "address", None)
    pages = ", pages at http://{}:{}".format(*address) if address else ""
    agents = ", ".join(app.engine.specs)
    sys.stdout.write(f"worker runs {agents}{pages}\n")
    sys.stdout.flush()


def up(settings: SettingsOption = None, set_: SetOption = None) -> None:
    """Start the broker (if it is the embedded one), the topics, and one worker per role.

    Workers that die are started again. Ctrl-C stops them; the broker goes on: `hb broker down`.
    """
    from agents.supervisor import Supervisor, worker_command
    from agents.worker import roles
    from cli.progress import shown_progress
    from cli.topics import create_missing
    from streams.settings.loading import settings_path

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

    def say(role: str, text: str) -> None:
        with lock:
            out.print(f"[{colour[role]}]{role:{width}}[/] ", end="", highlight=False)
            out.print(text, markup=False, highlight=False, soft_wrap=True)

    with Supervisor(names, lambda role: worker_command(str(file), set_ or (), role), say):
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            err.print("stopping", highlight=False)
