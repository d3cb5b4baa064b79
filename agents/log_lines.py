"""One line of a worker's log: when, how serious, which worker, and what.

Workers under a supervisor write lines as JSON, which it reads, shows in the format that was asked
for and keeps in a file. What a worker prints otherwise, such as the traceback of a crash, counts as
information.
"""

import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

Format = Literal["text", "json"]
FILE = "workers.log"
_MOST = 10 << 20
"""Bytes of a file after which a new one begins; one old file is kept."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log; `at` is in seconds since 1970, `source` the part of the code."""

    at: float
    level: str
    worker: str
    text: str
    source: str = ""

    @classmethod
    def of(cls, record: logging.LogRecord, worker: str) -> "LogLine":
        """Return what was logged, as a line."""
        level, text = record.levelname.lower(), record.getMessage()
        return cls(record.created, level, worker, text, record.name)

    @classmethod
    def read(cls, text: str, worker: str) -> "LogLine":
        """Return a line that was written as JSON, or any other text as information.

        >>> line = LogLine(1.5, "warning", "ensemble", "slow")
        >>> LogLine.read(line.json(), "?") == line
        True
        >>> LogLine.read("Traceback", "ensemble").level
        'info'
        """
        try:
            fields = json.loads(text)
            at = datetime.fromisoformat(fields.pop("at")).timestamp()
            return cls(at, **fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls(time.time(), "info", worker, text)

    def json(self) -> str:
        """Return the line as JSON."""
        at = datetime.fromtimestamp(self.at).astimezone().isoformat(timespec="milliseconds")
        return json.dumps({**asdict(self), "at": at}, ensure_ascii=False)

    def plain(self) -> str:
        """Return the line as text."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        return f"{when} {self.level:7} {self.worker}  {self.text}"

    def formatted(self, form: Format) -> str:
        """Return it in a format."""
        return self.json() if form == "json" else self.plain()


class LogFile:
    """The log of all workers of a state folder, one JSON object per line."""

    def __init__(self, state: Path) -> None:
        self.path = state / FILE

    def write(self, line: LogLine) -> None:
        """Add a line; begin a new file if this one is long."""
        if self.path.exists() and self.path.stat().st_size > _MOST:
            self.path.replace(self.path.with_suffix(".log.1"))
        private = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(private, "a") as file:
            file.write(line.json() + "\n")

    def last(self, count: int, worker: str | None = None) -> list[LogLine]:
        """Return the last lines, of one worker or of all."""
        files = [self.path.with_suffix(".log.1"), self.path]
        texts = (text for file in files if file.exists() for text in _lines(file))
        lines = (LogLine.read(text, "") for text in texts)
        return list(deque((line for line in lines if worker in (None, line.worker)), count))

    def follow(self) -> Iterator[LogLine]:
        """Yield what is written from now on, without end."""
        status = self.path.stat() if self.path.exists() else None
        return self._follow(*((status.st_ino, status.st_size) if status else (0, 0)))

    def _follow(self, inode: int, at: int) -> Iterator[LogLine]:
        remainder = ""
        while True:
            if self.path.exists():
                with self.path.open("rb") as file:
                    number = os.fstat(file.fileno()).st_ino
                    file.seek(at if number == inode else 0)
                    *whole, remainder = (remainder + file.read().decode(errors="replace")).split(
                        "\n"
                    )
                    inode, at = number, file.tell()
                yield from (LogLine.read(line, "") for line in whole)
            time.sleep(0.2)


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines()
