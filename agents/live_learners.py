"""Which local learners are live and which records are recent: what moves the join's clock.

A learner that is behind must be waited for, one that is silent must not. Only wall-clock time can
tell the two apart.
"""

from collections.abc import Iterable
from typing import NamedTuple

from learners.join import Event, Prediction
from streams.clock import wall

PATIENCE = 3_000
"""Milliseconds. Older records come from a backlog; a learner silent for longer is not waited for.

The inbox of a task (`EngineConfig.patience`) waits for topics as long as this waits for learners.
"""


class Liveness(NamedTuple):
    """What `Ledger.apply` needs to know about wall-clock time.

    live      records from this time on are recent
    awaited   the learners to wait for
    """

    live: int = 0
    awaited: tuple[int, ...] = ()


class LiveLearners:
    """Remembers by wall-clock time when each learner last made a prediction."""

    def __init__(self, learners: int) -> None:
        self._heard = [wall()] * learners

    def note(self, events: Iterable[Event]) -> Liveness:
        """Note which learners made predictions; return what is recent and who is awaited."""
        now = wall()
        for learner in {event.learner for event in events if isinstance(event, Prediction)}:
            self._heard[learner] = now
        since = now - PATIENCE
        return Liveness(since, tuple(i for i, heard in enumerate(self._heard) if heard >= since))
