"""What a worker writes to its log, and how often."""

import logging
import time
from collections.abc import Callable

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
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write a message."""
        if record.name.partition(".")[0] != _CLIENT:
            return True
        kind, now = (record.name, str(record.msg)), self._clock()
        if now - self._said.get(kind, -self._seconds) < self._seconds:
            return False
        self._said[kind] = now
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
            what = "" if str(record.msg).startswith(_CRASH) else f"{_short(record)}: "
            record.msg, record.args = "%s%s", (what, describe(error))
            record.exc_info = record.exc_text = None
        return True


def _short(record: logging.LogRecord) -> str:
    """Return a message without its arguments filled in."""
    return str(record.msg).partition("%")[0].strip(" :=")


def log_to_terminal() -> None:
    """Write our own messages, and the libraries' warnings, to standard error."""
    logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(Calm())
        handler.addFilter(Discreet())
    for noisy in ("faust", "mode", _CLIENT, "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
