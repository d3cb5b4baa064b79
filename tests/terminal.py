"""Runs `hb` in a real terminal, as a person does: a pseudo-terminal of 100 columns and 40 lines.

With `HB_RECORD=FOLDER` what appears is written there as asciicast files, which asciinema plays.
"""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

COLUMNS, LINES = 100, 40
PATIENCE = 240.0
_CODES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r")
_START = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it as a signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
from cli.main import main
sys.argv[0] = "hb"
main()
"""


class Screen:
    """A command in a terminal: what it has shown so far, and a keyboard."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**env, "TERM": "xterm-256color", "PYTHONFAULTHANDLER": "1"},
            start_new_session=True,
        )
        os.close(slave)
        self._began, self._raw = time.monotonic(), bytearray()
        self.frames: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._master, 65536)
            except OSError:  # the last one who had the terminal open is gone
                return
            if not chunk:
                return
            self._raw += chunk
            at = round(time.monotonic() - self._began, 3)
            self.frames.append((at, chunk.decode(errors="replace")))

    @property
    def text(self) -> str:
        """What has appeared so far, without colours and movements."""
        return _CODES.sub(b"", bytes(self._raw)).decode(errors="replace")

    def await_text(self, wanted: str) -> str:
        """Wait until a text (a regular expression) has appeared; return its first group or all."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(wanted, self.text)):
            assert self._process.poll() is None, f"ended without {wanted!r}:\n{self.text}"
            assert time.monotonic() < deadline, f"no {wanted!r} in:\n{self.text}"
            time.sleep(0.05)
        return match[1] if match.groups() else match[0]

    def press(self, keys: str) -> None:
        """Type on the keyboard; "\\x03" is Ctrl-C."""
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Wait for the end; return the exit code. If there is none, show what each thread does."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(PATIENCE)
            self._reader.join(5)
            pytest.fail(f"it does not end:\n{self.text}")
        finally:
            self.close()

    def close(self) -> None:
        """End the command if it still runs, and close the terminal."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        os.close(self._master)


class Terminal:
    """A person at a terminal in some folder. `name` is that of the recording."""

    def __init__(self, folder: Path, name: str, **env: str) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HB_SET")}
        self._folder, self._name = folder, name
        self._env = {**inherited, **env}
        self._frames: list[tuple[float, str]] = []

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Screen]:
        """Run a command beside the block; whatever is left of it ends with the block."""
        screen = Screen(arguments, self._folder, self._env)
        try:
            yield screen
        finally:
            if screen._process.poll() is None:
                screen.close()
            self._keep(arguments, screen)

    def hb(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end, expect an exit code, and return what it showed."""
        screen = Screen(arguments, self._folder, self._env)
        try:
            ended = screen.end()
            assert ended == code, f"hb {' '.join(arguments)}: {ended}\n{screen.text}"
            assert "Traceback" not in screen.text, screen.text
            return screen.text
        finally:
            self._keep(arguments, screen)

    def _keep(self, arguments: tuple[str, ...], screen: Screen) -> None:
        """Add a command to the recording; waiting for more than two seconds is cut short."""
        now = self._frames[-1][0] + 1.0 if self._frames else 0.0
        self._frames.append((now, f"$ hb {' '.join(arguments)}\r\n"))
        previous = 0.0
        for at, text in screen.frames:
            now += min(at - previous, 2.0)
            previous = at
            self._frames.append((now, text.replace(str(self._folder), "~")))
        if folder := os.environ.get("HB_RECORD"):
            head = {"version": 2, "width": COLUMNS, "height": LINES, "title": self._name}
            lines = [head, *([round(at, 3), "o", text] for at, text in self._frames)]
            file = Path(folder) / f"{self._name}.cast"
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
