"""Which local learners speak, and which records are of now: what moves the join's clock.

A learner that is behind has to be waited for, one that is silent has not. Only the wall's clock can
tell the two apart.
"""

from collections.abc import Iterable
from typing import NamedTuple

from learners.join import Event, Prediction
from streams.clock import wall

PATIENCE = 3_000
"""Milliseconds. What is older is read from a backlog; who is silent for longer is not awaited.

The inbox of a task (`EngineConfig.patience`) waits for topics as long as this waits for learners.
"""


class Present(NamedTuple):
    """What `Ledger.apply` is told of the wall's time."""

    live: int = 0
    awaited: tuple[int, ...] = ()


class Presence:
    """Notes by the wall's clock when each of some learners was last heard."""

    def __init__(self, learners: int) -> None:
        self._heard = [wall()] * learners

    def note(self, events: Iterable[Event]) -> Present:
        """Take note of who speaks; return what is of now and who is awaited."""
        now = wall()
        for learner in {event.learner for event in events if isinstance(event, Prediction)}:
            self._heard[learner] = now
        since = now - PATIENCE
        return Present(since, tuple(i for i, heard in enumerate(self._heard) if heard >= since))
