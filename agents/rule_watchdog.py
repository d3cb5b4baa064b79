"""Finds a rule that does not return, says which it is, and stops it.

While a rule runs its worker does nothing else: it sends no heartbeat and answers no page. So a
thread watches. It stops a rule that takes longer than the group waits for a heartbeat; the task
then stops with the rule's name as its reason. If the rule is in code that even this thread cannot
interrupt, the stack of all threads is written to standard error.
"""

import faulthandler
import logging
import sys
import threading
from typing import Self

from learners.rules.calls import CURRENT

_EVERY = 0.5
_STUCK = 3
"""How many times the limit passes before the stack is written."""
_log = logging.getLogger(__name__)


class RuleWatchdog:
    """Watches the rules of this process, as a context manager."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rule watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self._arm()
            rule = CURRENT.end_if_longer_than(self._seconds)
            if rule:
                _log.error("rule %s did not return within %g s; stopped", rule, self._seconds)

    def _arm(self) -> None:
        """Have the stack written unless this is called again: otherwise nothing runs any more."""
        if sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(_STUCK * self._seconds, file=sys.__stderr__)
