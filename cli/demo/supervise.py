"""Supervises the workers of a demonstration, and cleans up whatever happens to its parent.

Run as a program with the folder as argument; lines on its standard input say what to do:

    start   start the workers: one for the local learners, one for the ensemble
    keep    go on when the input closes

When the input closes, which the kernel does even for a killed parent, it stops the workers and the
broker and deletes the folder; if it was told to keep, it does so on SIGTERM or SIGINT.
"""

import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from agents.roles import roles
from agents.supervisor import Supervisor, worker_command
from cli.demo.folder import Place
from settings.loading import load_settings


def main(folder: Path) -> None:
    """Serve until the input closes, or a signal comes."""
    place = Place(folder)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    supervisor: Supervisor | None = None
    try:
        for line in sys.stdin:
            if line.strip() == "start":
                supervisor = _start(place)
            elif line.strip() == "keep":
                threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # it is ending already
        if supervisor is not None:
            supervisor.stop()
        place.clear()


def _leave(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _start(place: Place) -> Supervisor:
    settings = load_settings(place.settings, environ={})
    log, lock = place.log.open("a", buffering=1), threading.Lock()

    def say(role: str, text: str) -> None:
        with lock:
            log.write(f"{time.strftime('%H:%M:%S')} {role}: {text}\n")

    *learners, ensemble = roles(settings)
    played = {"learners": learners, "ensemble": [ensemble]}
    supervisor = Supervisor(list(played), lambda name: _command(place, played[name]), say)
    supervisor.start()
    return supervisor


def _command(place: Place, wanted: Sequence[str]) -> list[str]:
    """Return the command of a worker for several roles."""
    first, *others = wanted
    more = [part for role in others for part in ("--role", role)]
    return [*worker_command(str(place.settings), (), first), *more]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
