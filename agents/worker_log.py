"""What a worker writes to its log, and how often."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agents.log_lines import Format, LogLine
from streams.engine.tasks.task import describe

QUIET_SECONDS = 30.0
_CLIENT = "aiokafka"
_CRASH = "Crashed reason="


class Calm(logging.Filter):
    """Rate-limits each kind of message from the Kafka client.

    A client whose broker is down logs the same complaint ten times a second.
    """

    def __init__(self, seconds: float = QUIET_SECONDS, clock: Callable[[], float] = time.monotonic):
        super().__init__()
        self._seconds, self._clock = seconds, clock
        self._last_written: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write a message."""
        if record.name.partition(".")[0] != _CLIENT:
            return True
        kind, now = (record.name, str(record.msg)), self._clock()
        if now - self._last_written.get(kind, -self._seconds) < self._seconds:
            return False
        self._last_written[kind] = now
        return True


class Discreet(logging.Filter):
    """Keeps error texts out of the log, because they may contain values from records.

    The libraries log errors with text and traceback; what remains is the error's type and where
    it happened.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a message that reports an error."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            prefix = "" if str(record.msg).startswith(_CRASH) else f"{_short(record)}: "
            record.msg, record.args = "%s%s", (prefix, describe(error))
            record.exc_info = record.exc_text = None
        return True


def _short(record: logging.LogRecord) -> str:
    """Return a message without its arguments filled in."""
    return str(record.msg).partition("%")[0].strip(" :=")


class Chatter(logging.Filter):
    """Drops what Faust's services log about starting and stopping.

    Every part of an application is a service that announces itself, as ours do by inheritance.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write a message."""
        return record.levelno > logging.INFO or not str(record.msg).startswith("[^")


@dataclass(frozen=True)
class LogStyle:
    """How a worker writes its log: for people or programs, and how much."""

    form: Format = "text"
    detail: Literal["quiet", "normal", "verbose"] = "normal"

    def arguments(self) -> list[str]:
        """Return it as arguments of `agents.worker_process`."""
        return ["--log-format", self.form, "--log-detail", self.detail]


class _Lines(logging.Formatter):
    def __init__(self, worker: str, form: Format) -> None:
        super().__init__()
        self._worker, self._form = worker, form

    def format(self, record: logging.LogRecord) -> str:
        return LogLine.of(record, self._worker).formatted(self._form)


_LEVELS = {"quiet": logging.WARNING, "normal": logging.INFO, "verbose": logging.DEBUG}


def log_to_terminal(worker: str, style: LogStyle) -> None:
    """Write our own messages, and the libraries' warnings, to standard error."""
    verbose = style.detail == "verbose"
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(worker, style.form))
    for log_filter in (Calm(), Discreet(), *(() if verbose else (Chatter(),))):
        handler.addFilter(log_filter)
    logging.basicConfig(level=_LEVELS[style.detail], handlers=[handler])
    for noisy in ("faust", "mode", _CLIENT, "asyncio", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.INFO if verbose else logging.WARNING)
