"""Supervises the workers of a demonstration, and cleans up whatever happens to its parent.

Run as a program with the folder as argument; lines on its standard input say what to do:

    start   start the workers: one for the local learners, one for the ensemble
    kill    kill -9 the worker of the local learners; it is started again, as any that dies
    keep    continue when the input closes

When the input closes, which the kernel does even for a killed parent, it stops the workers and the
broker and deletes the folder; if it was told to keep, it does so on SIGTERM or SIGINT.
"""

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from agents.log_lines import LogFile, LogLine
from agents.roles import roles
from agents.supervisor import Supervisor
from agents.worker_log import LogStyle
from agents.worker_process import command
from cli.demo.folder import DemoFolder
from settings.loading import load_settings

LEARNERS = "learners"
"""The worker of all local learners."""


def main(folder: Path) -> None:
    """Serve until the input closes or a signal arrives."""
    place = DemoFolder(folder)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    supervisor: Supervisor | None = None
    try:
        for line in sys.stdin:
            if line.strip() == "start":
                supervisor = _start(place)
            elif line.strip() == "kill" and supervisor is not None:
                supervisor.kill(LEARNERS)
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


def _start(place: DemoFolder) -> Supervisor:
    settings = load_settings(place.settings, environ={})
    settings.worker.state.mkdir(parents=True, exist_ok=True)
    log, lock = LogFile(settings.worker.state), threading.Lock()

    def say(line: LogLine) -> None:
        with lock:
            log.write(line)

    *learners, ensemble = roles(settings)
    played = {LEARNERS: learners, "ensemble": [ensemble]}

    def worker_command(name: str) -> Sequence[str]:
        style = LogStyle("json")
        return command(place.settings, (), played[name], supervised=True, log=style)

    supervisor = Supervisor(list(played), worker_command, say)
    supervisor.start()
    return supervisor


if __name__ == "__main__":
    main(Path(sys.argv[1]))
