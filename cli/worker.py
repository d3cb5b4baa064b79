"""`hb up`, `hb down` and `hb worker`: run the agents, and stop them."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.ensembles import FilesArgument, load_all
from cli.logging_options import LogFormatOption, QuietOption, VerboseOption, log_style
from cli.logs import line_printer
from cli.output import JsonOption, err, interrupt_on_sigterm, out, print_json
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from agents.log_lines import LogLine
    from agents.supervisor import Line, Supervisor
    from agents.worker_log import LogStyle
    from settings.model import Settings

RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="`local:NAME` or `ensemble`; may be given more than once.  [default: all roles]",
        show_default=False,
    ),
]
_POLL = 0.2


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.command(rich_help_panel="Running")(up)
    app.command(rich_help_panel="Running")(down)
    app.command(rich_help_panel="Running")(worker)


def worker(
    *,
    settings: SettingsOption = None,
    set_: SetOption = None,
    role: RoleOption = None,
    log_format: LogFormatOption = "text",
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one worker, with all learners or only those of `--role`.

    Start as many as you like: they share the work. On Ctrl-C a worker commits what it has done,
    hands its share over to the others and exits.

    Examples: `hb worker`, `hb worker --role local:imaging`, `hb worker --role ensemble --quiet`.
    """
    from agents.roles import specs
    from agents.worker_process import serve

    style = log_style(log_format, verbose=verbose, quiet=quiet)
    loaded = load(settings, set_)
    specs(loaded, role or ())
    serve(loaded, role or (), log=style)


def up(
    files: FilesArgument = None,
    *,
    settings: SettingsOption = None,
    set_: SetOption = None,
    log_format: LogFormatOption = "text",
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Start everything: the embedded broker (if no other is set), the topics, a worker per role.

    The command keeps running and shows the workers' log; a worker that dies is restarted. Ctrl-C
    stops the workers; `hb down`, in another terminal, also stops the broker. If this process is
    killed, its workers stop too.

    Several settings files start several ensembles. Two that would share a name, topics or a state
    folder are refused.

    Examples: `hb up`, `hb up heart.toml lung.toml`.
    """
    from agents.neighbours import check_apart
    from agents.supervisor import sole_supervisor

    style = log_style(log_format, verbose=verbose, quiet=quiet)
    ensembles = load_all(files, settings, set_)
    check_apart({str(file): loaded for file, loaded in ensembles.items()})
    interrupt_on_sigterm()
    with ExitStack() as stack:
        for loaded in ensembles.values():
            stack.enter_context(sole_supervisor(loaded.worker.state))
        for loaded in ensembles.values():
            _start_broker(loaded)
        try:
            for file, loaded in ensembles.items():
                name = loaded.name if len(ensembles) > 1 else ""
                stack.enter_context(_supervised(file, loaded, set_ or (), style, name))
            for loaded in ensembles.values():
                _tell_console(loaded, named=len(ensembles) > 1)
            threading.Event().wait()
        except KeyboardInterrupt:
            err.print("stopping", highlight=False)


def _supervised(
    file: Path, settings: "Settings", overrides: Sequence[str], style: "LogStyle", name: str
) -> "Supervisor":
    """Return what keeps an ensemble's workers alive; a name is shown with each of its lines."""
    from agents.roles import roles
    from agents.supervisor import Supervisor
    from agents.worker_log import LogStyle
    from agents.worker_process import command

    log = LogStyle("json", style.detail)

    def worker_command(role: str) -> Sequence[str]:
        return command(file, overrides, [role], supervised=True, log=log)

    return Supervisor(roles(settings), worker_command, _printer(settings.worker.state, style, name))


def down(
    *,
    keep_broker: Annotated[
        bool, typer.Option("--keep-broker", help="Stop the workers only.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Stop what `hb up` started: the workers, and the broker if it is the embedded one.

    Nothing is lost: the next `hb up` continues where this one stopped.

    Examples: `hb down`, or `hb down --keep-broker` to stop the workers only.
    """
    from agents.supervisor import stop_supervisor

    loaded = load(settings, set_)
    workers = stop_supervisor(loaded.worker.state) is not None
    broker = None
    if not keep_broker and not loaded.broker.bootstrap:
        from streams.broker import EmbeddedBroker

        embedded = EmbeddedBroker()
        broker = embedded.running
        embedded.down()
    if json:
        print_json({"workers_stopped": workers, "broker_stopped": bool(broker)})
        return
    out.print("workers: stopped" if workers else "workers: hb up is not running here")
    if broker is not None:
        out.print("broker: stopped" if broker else "broker: was not running")


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


def _printer(state: Path, style: "LogStyle", name: str) -> "Line":
    """Return a function that shows the workers' lines and keeps them for `hb logs`."""
    from agents.log_lines import LogFile

    show, file, lock = line_printer(style.form), LogFile(state), threading.Lock()

    def say(line: "LogLine") -> None:
        with lock:
            file.write(line)
            show(replace(line, worker=f"{name}/{line.worker}") if name else line)

    return say


def _tell_console(settings: "Settings", *, named: bool) -> None:
    """Wait until a worker serves the console, and print its address."""
    from agents.worker_pages import worker_pages

    if not settings.worker.console:
        return
    pause, state = threading.Event(), settings.worker.state
    while not (pages := [page for page in worker_pages(state) if page.console]):
        pause.wait(_POLL)
    whose = f" of {settings.name}" if named else ""
    text = f"console{whose}: {pages[0].address}  (any worker's shows the whole system)"
    err.print(text, highlight=False, soft_wrap=True)
