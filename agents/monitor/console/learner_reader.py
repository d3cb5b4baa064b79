"""Reads one learner's counts from its changelog, on request.

The first request for a learner reads its changelog from the start, later ones only what was added.
Simultaneous requests share one reading, and an answer is reused for a few seconds.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.clients.topic_reader import TopicReader
from agents.monitor.console.learner_details import learner_details
from agents.monitor.state_view import StateView
from agents.totals import LABELLED
from settings.model import Settings
from streams.kafka.topics import Topics, local

FRESH = 3.0
"""Seconds for which an answer is reused."""


@dataclass
class _Learner:
    view: StateView
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    ends: dict[Any, int] = field(default_factory=dict)
    answer: bytes = b""
    at: float = float("-inf")


class LearnerReader:
    """Details of learners, as JSON."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._learners: dict[str, _Learner] = {}

    def forget(self) -> None:
        """Drop everything that was read: no page is open."""
        self._learners.clear()

    async def of(self, name: str) -> bytes:
        """Return the cubes and rules of a learner."""
        topic = Topics.of(self._settings).shared(local(name))
        learner = self._learners.get(name)
        if learner is None:
            learner = self._learners[name] = _Learner(StateView({topic: ("counts", "totals")}))
        async with learner.lock:
            if self._clock() - learner.at >= FRESH:
                await self._read(learner, topic)
                # In a thread, because a learner may have visited a million cubes.
                learner.answer = await asyncio.to_thread(self._answer, name, learner.view, topic)
                learner.at = self._clock()
        return learner.answer

    async def _read(self, learner: _Learner, topic: str) -> None:
        async with TopicReader(self._settings, [topic], "start") as reader:
            if any(learner.ends.get(place, 0) > end for place, end in reader.ends.items()):
                learner.view, learner.ends = (
                    StateView({topic: ("counts", "totals")}),
                    {},
                )  # recreated
            starts = {p: max(learner.ends.get(p, 0), begin) for p, begin in reader.begins.items()}
            reader.seek(starts)
            async for records in reader.present():
                learner.view.take(records)
            learner.ends = dict(reader.ends)

    def _answer(self, name: str, view: StateView, topic: str) -> bytes:
        totals = view.sums(topic, "totals").get(0)
        labelled = 0 if totals is None else int(totals[LABELLED])
        return orjson.dumps(
            learner_details(self._settings, name, view.sums(topic, "counts"), labelled)
        )
