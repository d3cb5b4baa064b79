"""Keeps patients from running ahead of what is learned: `hb teach`, `hb produce --pace labels`.

A patient that is diagnosed before the labels of those before it are learned is diagnosed by an
ensemble that knows less than it could. So only a few patients may be in flight, labels included.
What is learned is seen on the feedback topics: the ensemble has counted the label and told the
learners. Two limits hold, the smaller one counts:

    learned / 20           what a decision does not know yet is a twentieth of what it knows: one
                           patient at first, and later as many as make the trip worth it
    2 · fastest · shortest twice what the pipeline learns in the time that a patient needs at least,
                           by the highest rate and the shortest trip so far: more patients in flight
                           would only wait in queues, and be no faster (as in BBR, Cardwell et al.,
                           2016)
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import NamedTuple, Self

from agents.clients.topic_reader import TopicReader
from settings.errors import HbError
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.kafka.topics import Topics

_KNOWN = 20
"""Labels learned for each patient that may be in flight."""
_SPARE = 2.0
"""How many times as much as the pipeline holds may be in flight: room to show that it is faster."""
_PATIENCE = 30.0
"""Seconds without any progress, beyond the fusion time-out, after which the wait is given up."""


class _Sent(NamedTuple):
    """When a patient was sent, and how much was learned by then."""

    at: float
    learned: int


class LabelPace:
    """Counts what is in flight. Use it as an asynchronous context manager around the publishing.

    learned     patients whose label has been learned
    overtaken   patients that were not waited for any longer
    strict      raise HbError if nothing is learned at all, rather than going on without
    """

    def __init__(self, settings: Settings, *, strict: bool = False) -> None:
        topics = Topics.of(settings)
        self._reader = TopicReader(settings, [topics.feedback(name) for name in settings.learners])
        self._under_way: dict[bytes, _Sent] = {}
        self._seen: set[bytes] = set()
        self._patience = _PATIENCE + milliseconds(settings.ensemble.fusion_timeout) / 1000
        self._strict = strict
        self._fastest, self._shortest = 0.0, float("inf")
        self.learned = 0
        self.overtaken = 0

    async def __aenter__(self) -> Self:
        await self._reader.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.__aexit__(*error)

    @property
    def most(self) -> int:
        """How many patients may be in flight now."""
        limit = self.learned // _KNOWN
        if self._fastest:
            limit = min(limit, ceil(_SPARE * self._fastest * self._shortest))
        return max(1, limit)

    def room(self) -> int:
        """Return how many patients may be sent now."""
        return self.most - len(self._under_way)

    def note(self, ids: Sequence[str], labels: Sequence[str]) -> None:
        """Note the patients sent; those without a label are not waited for."""
        named = {name.encode() for name, label in zip(ids, labels, strict=True) if label}
        # An id that came before brings no feedback of its own.
        sent = _Sent(time.monotonic(), self.learned)
        self._under_way |= dict.fromkeys(named - self._seen, sent)
        self._seen |= named

    async def wait(self) -> None:
        """Wait until there is room for a patient."""
        await self._until(lambda: self.room() > 0)

    async def finish(self) -> None:
        """Wait until everything is learned."""
        await self._until(lambda: not self._under_way)

    async def _until(self, ready: Callable[[], bool]) -> None:
        """Wait until this holds, or until there is no more progress."""
        moved_at = time.monotonic()
        while not ready():
            if self.see({record.key for record in await self._reader.read(0.05)}):
                moved_at = time.monotonic()
            elif time.monotonic() - moved_at > self._patience:
                self._give_up()
            await asyncio.sleep(0)

    def see(self, keys: Collection[bytes]) -> int:
        """Note the patients whose label is learned; return how many of them were in flight."""
        back = [sent for key in keys if (sent := self._under_way.pop(key, None)) is not None]
        self.learned += len(back)
        now = time.monotonic()
        for sent in set(back):
            took = max(now - sent.at, 1e-3)
            self._shortest = min(self._shortest, took)
            self._fastest = max(self._fastest, (self.learned - sent.learned) / took)
        return len(back)

    def _give_up(self) -> None:
        if self._strict and not self.learned:
            raise HbError(
                f"no label was learned in {self._patience:.0f} s: is a worker running? See hb"
                " status; to continue, run the same command again"
            )
        self.overtaken += len(self._under_way)
        self._under_way.clear()
