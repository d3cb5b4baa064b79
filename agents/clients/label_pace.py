"""Keeps patients from running ahead of what is learned: `hb produce --pace labels`.

A patient that is diagnosed before the labels of those before it are learned is diagnosed by an
ensemble that knows less than it could. So only a few patients may be on their way, labels included:
one at first, and one more for every twenty labels that are learned. What is learned is seen on the
feedback topics: the ensemble has counted the label and told the learners.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Self

from agents.clients.topic_reader import TopicReader
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.kafka.topics import Topics

_MORE = 20
"""Labels learned for each patient more that may be on its way."""
_PATIENCE = 30.0
"""Seconds without any progress, beyond the fusion time-out, after which nothing is waited for."""


class LabelPace:
    """Counts what is on its way. Use it as an asynchronous context manager around the publishing.

    overtaken   patients that were not waited for any longer
    """

    def __init__(self, settings: Settings) -> None:
        topics = Topics.of(settings)
        self._reader = TopicReader(settings, [topics.feedback(name) for name in settings.learners])
        self._under_way: set[bytes] = set()
        self._seen: set[bytes] = set()
        self._patience = _PATIENCE + milliseconds(settings.ensemble.fusion_timeout) / 1000
        self.learned = 0
        self.overtaken = 0

    async def __aenter__(self) -> Self:
        await self._reader.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.__aexit__(*error)

    @property
    def most(self) -> int:
        """How many patients may be on their way now."""
        return max(1, self.learned // _MORE)

    def room(self) -> int:
        """Return how many patients may be sent now."""
        return self.most - len(self._under_way)

    def note(self, ids: Sequence[str], labels: Sequence[str]) -> None:
        """Take note of patients that are sent; one without a label is not waited for."""
        named = {name.encode() for name, label in zip(ids, labels, strict=True) if label}
        # An id that came before brings no feedback of its own.
        self._under_way |= named - self._seen
        self._seen |= named

    async def wait(self) -> None:
        """Wait until there is room for a patient."""
        await self._until(self.most - 1)

    async def finish(self) -> None:
        """Wait until everything is learned."""
        await self._until(0)

    async def _until(self, most: int) -> None:
        """Wait until so many patients at most are on their way, or nothing moves any more."""
        last = time.monotonic()
        while len(self._under_way) > most:
            known = len(self._under_way)
            self._under_way.difference_update(r.key for r in await self._reader.read(0.05))
            self.learned += known - len(self._under_way)
            if len(self._under_way) < known:
                last = time.monotonic()
            elif time.monotonic() - last > self._patience:
                self.overtaken += known
                self._under_way.clear()
            await asyncio.sleep(0)
