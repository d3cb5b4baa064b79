"""What a worker writes to its log, and how often."""

import logging
import time
from collections.abc import Callable

QUIET_SECONDS = 30.0
_CLIENT = "aiokafka"


class Calm(logging.Filter):
    """Lets each kind of message of the Kafka client through once in a while.

    A client whose broker is away complains ten times a second, in the same words.
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


def log_to_terminal() -> None:
    """Write our own messages, and warnings of the libraries, to standard error."""
    logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(Calm())
    for noisy in ("faust", "mode", _CLIENT, "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
