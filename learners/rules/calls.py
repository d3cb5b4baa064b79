"""Which rule is running and since when, so that one that does not return can be named and stopped.

Rules are foreign code and run in the caller's thread, which waits as long as they take.
A watching thread looks at `CURRENT` and calls `end_if_longer_than`; then `RuleHangs` is raised in
the rule, wherever it is. Code that never returns to the interpreter cannot be ended this way.
"""

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class RuleHangs(BaseException):
    """A rule took too long and was ended; no rule's own `except Exception` catches it."""


class Call:
    """The rule that a thread waits for, if any."""

    def __init__(self) -> None:
        self.rule = ""
        self._since: float | None = None
        self._thread = 0
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def of(self, rule: str) -> Iterator[None]:
        """Note that a rule is running, until the block is left."""
        self.rule, self._thread, self._since = rule, threading.get_ident(), time.monotonic()
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._since = None
            if self._ended:  # it may have returned just before it was to be ended
                self._ended = False
                _raise_in(self._thread, None)

    def end_if_longer_than(self, seconds: float) -> str:
        """End a rule that has run for longer; return its name, or an empty string."""
        with self._lock:
            since = self._since
            if since is None or self._ended or time.monotonic() - since < seconds:
                return ""
            self._ended = True
            _raise_in(self._thread, RuleHangs)
            return self.rule


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in another thread at its next step, or take one back that was not raised."""
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


CURRENT = Call()
