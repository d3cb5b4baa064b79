"""Runs one worker process per role, restarts what dies, and merges their logs.

A worker that keeps dying is started again after ever longer pauses, and the reason is in the log.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
_STEADY = 30.0
"""A worker that lived this long is held for sound: the next pause is short again."""
_STOP_WITHIN = 15.0

Line = Callable[[str, str], None]
"""Told who says what, line by line."""


@dataclass
class Child:
    """A role and the process that plays it."""

    role: str
    command: Sequence[str]
    process: subprocess.Popen[str] | None = None
    since: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = 0.0
    restarts: int = -1
    reader: threading.Thread | None = field(default=None, repr=False)


class Supervisor:
    """Keeps a process alive for each role.

    `command(role)` returns what to start; `line(role, text)` gets every line that one prints.
    """

    def __init__(
        self, roles: Sequence[str], command: Callable[[str], Sequence[str]], line: Line
    ) -> None:
        self.children = [Child(role, command(role)) for role in roles]
        self._line = line
        self._over = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self) -> None:
        """Start all, and keep them alive in the background."""
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
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A group of its own: Ctrl-C reaches the supervisor only, which stops them in order.
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        child.since, child.restarts = time.monotonic(), child.restarts + 1
        child.reader = threading.Thread(target=self._read, args=(child, child.process), daemon=True)
        child.reader.start()

    def _read(self, child: Child, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        for text in process.stdout:
            self._line(child.role, text.rstrip("\n"))

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
        if now - child.since > _STEADY:
            child.pause = FIRST_PAUSE
        self._line(child.role, f"ended ({_why(code)}); starting it again in {child.pause:g} s")
        child.process, child.due = None, now + child.pause
        child.pause = min(2 * child.pause, LONGEST_PAUSE)

    def stop(self) -> None:
        """Ask all to stop, wait, and end what does not."""
        self._over.set()
        if self._keeper is not None:
            self._keeper.join()
        running = [c for c in self.children if c.process is not None]
        for child in running:
            _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_WITHIN
        for child in running:
            assert child.process is not None  # noqa: S101 - filtered above
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.process.wait()
            if child.reader is not None:
                child.reader.join(1.0)


def _signal(child: Child, number: int) -> None:
    if child.process is not None and child.process.poll() is None:
        child.process.send_signal(number)


def _why(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def worker_command(settings_file: str, overrides: Sequence[str], role: str) -> list[str]:
    """Return the command of a worker for one role, with this Python."""
    sets = [part for override in overrides for part in ("--set", override)]
    program = [sys.executable, "-c", "from cli.main import main; main()"]
    return [*program, "worker", "--settings", settings_file, *sets, "--role", role]
