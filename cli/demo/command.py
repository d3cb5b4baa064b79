"""`hb demo`: the whole system on this machine, in under a minute."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import JsonOption, err, out, print_json

if TYPE_CHECKING:
    from agents.clients.patient_files import TablePatients
    from cli.demo.demonstration import Progress
    from cli.demo.folder import DemoFolder
    from settings.model import Settings

_STOP_WITHIN = 30.0


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Start here")(demo)


def demo(
    *,
    patients: Annotated[
        int,
        typer.Option(min=10, max=100_000, help="How many to send; beyond 569 they repeat."),
    ] = 569,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the broker and the workers running afterwards.")
    ] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop a demo that was left running; do nothing else.")
    ] = False,
    pace: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.1,
            help="Patients per second; a small number gives you time to watch."
            "  [default: all in ten seconds]",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Decides the order of patients and which learner sees which features."
        ),
    ] = 4,
    secure: Annotated[
        bool,
        typer.Option("--secure", help="Use a broker with TLS, log-in and access control."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Watch it work: a real broker, real workers, late labels, and a crash along the way.

    Breast cancer patients (WDBC) arrive one by one. Three learners see a third of the features
    each, and the ensemble weighs their votes. It starts untaught and learns from labels that arrive
    after the diagnoses. Midway, a worker is killed and another takes over. At the end, every figure
    is recounted from the topics.

    The demo prints the address of its console: open it to watch the ensemble learn, and the demo
    waits until you close it. Everything runs on this machine, in a folder of its own that is
    removed afterwards unless you pass `--keep`.

    Examples: `hb demo`, `hb demo --pace 5` to watch it slowly, `hb demo --keep` to try other
    commands on it and `hb demo --stop` when you are done.
    """
    from cli.demo.folder import DemoFolder

    place = DemoFolder()
    if stop:
        _stop(place, json)
        return
    from cli.demo.demonstration import Demo
    from cli.demo.wdbc import with_gaps

    began = time.monotonic()
    work = Demo(place, patients, seed, rate=pace)
    with work.kept(keep):
        address, source, proposed = prepare(place, seed, secure=secure)
        source, work.progress.gaps = with_gaps(source)
        with shown(work.progress, address):
            settings = asyncio.run(work.run(source, proposed))
        err.print(f"hb: done after {time.monotonic() - began:.0f} s", highlight=False)
        _finish(work.progress, settings, json)
        if keep and not json:
            _print_kept(place, address, work.progress)
    if not keep and not json:
        out.print("\nTo leave it running, with its console: hb demo --keep", markup=False)


def prepare(
    place: "DemoFolder", seed: int, *, secure: bool = False
) -> "tuple[str, TablePatients, str]":
    """Start the broker while the data is read; return address, patients and settings."""
    from cli.download_progress import shown_progress
    from streams.broker import USER, EmbeddedBroker

    err.print("hb: starting a broker", highlight=False)
    with shown_progress() as progress, ThreadPoolExecutor(1) as pool:
        users = (USER,) if secure else None
        broker = EmbeddedBroker(place.folder / "broker", users=users, progress=progress)
        starting = pool.submit(broker.up)
        from cli.demo.wdbc import wdbc
        from cli.init import checked_text, for_wdbc

        source = wdbc()
        proposed = checked_text(for_wdbc(None, seed, paper=False), place.settings)
        return starting.result(), source, proposed


@contextmanager
def shown(progress: "Progress", address: str) -> Iterator[None]:
    """Show the progress: a live picture on a terminal, plain lines elsewhere."""
    from cli.demo.view import Lines, Picture

    if err.is_terminal:
        from rich.live import Live

        picture = Picture(progress, address)
        with Live(get_renderable=picture, console=err, refresh_per_second=6):
            yield
        return
    lines, over = Lines(progress), threading.Event()

    def report() -> None:
        while not over.wait(0.1):
            lines()

    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()
        lines(last=True)


def _finish(progress: "Progress", settings: "Settings", json: bool) -> None:
    """Recount, then print the summary."""
    from cli.demo.summary import figures, recount, story

    recount(settings, progress)
    sentences = story(settings, progress)
    if json:
        report: dict[str, Any] = {
            "figures": figures(progress),
            "units": {"rates": "percent", "regret": "errors"},
            "settings": {"mode": settings.ensemble.mode, "learners": list(settings.learners)},
            "story": sentences,
        }
        print_json(report)
        return
    out.print()
    for sentence in sentences:
        out.print(f"- {sentence}", markup=False, highlight=False)


def _print_kept(place: "DemoFolder", address: str, progress: "Progress") -> None:
    out.print()
    out.print(f"Still running: Kafka at {address}, console at {progress.page}", markup=False)
    file = place.settings
    for command in (
        "console",
        "status --watch",
        "produce --dataset wdbc --rate 20",
        "diagnoses --follow",
        "logs --follow",
    ):
        out.print(f"  hb {command} --settings {file}", markup=False, soft_wrap=True)
    out.print("To stop it: hb demo --stop")


def _stop(place: "DemoFolder", json: bool) -> None:
    """Stop a demo that was left running."""
    keeper = place.keeper
    if keeper is not None:
        keeper.send_signal(signal.SIGTERM)
        keeper.wait(_STOP_WITHIN)
    place.clear()
    if json:
        print_json({"was_running": keeper is not None})
    else:
        out.print("stopped" if keeper is not None else "no demo was running")
