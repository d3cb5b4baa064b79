"""Runs one worker process per role, restarts those that die, and merges their logs.

A worker that keeps dying is restarted after increasing pauses, and the reason is logged. Each
worker's standard input is a pipe that the supervisor holds open: when the supervisor exits, for
whatever reason, the workers see the pipe close and stop (`agents.worker_process`).
"""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from agents.log_lines import LogLine
from agents.worker_process import STOP_WITHIN
from settings.errors import InputError

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
_STEADY = 30.0
"""A worker that ran this long counts as healthy: its next pause is short again."""
_LOCK = "supervisor.lock"

Line = Callable[[LogLine], None]
"""Called with each line that a worker writes, and with what happens to it."""


@dataclass
class Child:
    """A role and the worker process that runs it."""

    role: str
    command: Sequence[str]
    process: subprocess.Popen[str] | None = None
    since: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = 0.0
    restarts: int = -1
    reader: threading.Thread | None = field(default=None, repr=False)


class Supervisor:
    """Keeps a worker process alive for each role.

    `command(role)` returns the command to start; `line` gets every line of its log.
    """

    def __init__(
        self, roles: Sequence[str], command: Callable[[str], Sequence[str]], line: Line
    ) -> None:
        self.children = [Child(role, command(role)) for role in roles]
        self._line = line
        self._over = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self) -> None:
        """Start all workers, and keep them alive in the background."""
        for child in self.children:
            self._start(child)
        self._keeper = threading.Thread(target=self._keep, name="supervisor", daemon=True)
        self._keeper.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, child: Child) -> None:
        child.process = subprocess.Popen(  # noqa: S603 - our own command
            child.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # In its own process group: Ctrl-C reaches only the supervisor, which stops the workers.
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        child.since, child.restarts = time.monotonic(), child.restarts + 1
        child.reader = threading.Thread(target=self._read, args=(child, child.process), daemon=True)
        child.reader.start()

    def _read(self, child: Child, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        with process.stdout:
            for text in process.stdout:
                self._line(LogLine.read(text.rstrip("\n"), child.role))

    def _keep(self) -> None:
        while not self._over.wait(0.2):
            for child in self.children:
                self._look_after(child, time.monotonic())

    def _look_after(self, child: Child, now: float) -> None:
        if child.process is None:
            if now >= child.due:
                self._start(child)
            return
        code = child.process.poll()
        if code is None:
            return
        _release(child)
        if now - child.since > _STEADY:
            child.pause = FIRST_PAUSE
        line = f"ended ({_why(code)}); restarting in {child.pause:g} s"
        self._line(LogLine(time.time(), "warning", child.role, line, __name__))
        child.process, child.due = None, now + child.pause
        child.pause = min(2 * child.pause, LONGEST_PAUSE)

    def kill(self, role: str) -> None:
        """Kill a worker as a crash would, to show that nothing is lost; it is started again."""
        for child in self.children:
            if child.role == role:
                _signal(child, signal.SIGKILL)

    def stop(self) -> None:
        """Ask all workers to stop, wait, and kill those that do not."""
        self._over.set()
        if self._keeper is not None:
            self._keeper.join()
        running = [c for c in self.children if c.process is not None]
        for child in running:
            _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_WITHIN
        for child in running:
            assert child.process is not None  # noqa: S101 - filtered above
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.process.wait()
            _release(child)


def _release(child: Child) -> None:
    """Read the last lines of a process that has ended, and close its pipes."""
    if child.reader is not None:
        child.reader.join(1.0)
    if child.process is not None and child.process.stdin is not None:
        child.process.stdin.close()


def _signal(child: Child, number: int) -> None:
    if child.process is not None and child.process.poll() is None:
        child.process.send_signal(number)


def _why(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def stop_supervisor(state: Path, patience: float = 2 * STOP_WITHIN) -> int | None:
    """Stop the process that runs the workers of a state folder; return it, None if there is none.

    Raises InputError if it does not end in time.
    """
    if not (state / _LOCK).exists():
        return None
    with (state / _LOCK).open("r+") as file:
        process_id = None
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                if process_id is None and (text := file.read().strip()):
                    process_id = int(text)
                    os.kill(process_id, signal.SIGTERM)
            else:
                return process_id
            if time.monotonic() > deadline:
                raise InputError(f"process {process_id} has not stopped after {patience:g} s")
            time.sleep(0.1)


@contextmanager
def sole_supervisor(state: Path) -> Iterator[None]:
    """Hold a state folder while the block runs; InputError names the process that holds it.

    The kernel releases the lock when the process ends: after a kill there is nothing to clean up.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / _LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise InputError(
                f"process {file.read().strip()} already runs the workers of {state}; stop it first,"
                " or choose another worker.state"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
