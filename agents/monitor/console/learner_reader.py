"""Reads one learner's counts from its changelog, when somebody asks to see them.

The first question about a learner reads its changelog from the start; later ones only what was
added. Many questions at once are one reading, and an answer is good for a few seconds.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.clients.topic_reader import TopicReader
from agents.monitor.console.learner_details import near
from agents.monitor.state_view import StateView
from agents.totals import LABELLED
from settings.model import Settings
from streams.kafka.topics import Topics, local

FRESH = 3.0
"""Seconds for which an answer is given again."""


@dataclass
class _Learner:
    view: StateView
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    ends: dict[Any, int] = field(default_factory=dict)
    answer: bytes = b""
    at: float = float("-inf")


class Details:
    """Answers about learners, as JSON."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._learners: dict[str, _Learner] = {}
        self.readings = 0
        """How often a changelog was read."""

    def forget(self) -> None:
        """Drop everything that was read: nobody is looking."""
        self._learners.clear()

    async def of(self, name: str) -> bytes:
        """Return the cubes and rules of a learner."""
        topic = Topics.of(self._settings).shared(local(name))
        known = self._learners.get(name)
        if known is None:
            known = self._learners[name] = _Learner(StateView({topic: ("counts", "totals")}))
        async with known.lock:
            if self._clock() - known.at >= FRESH:
                await self._read(known, topic)
                # Away from the loop: a learner may have visited a million cubes.
                known.answer = await asyncio.to_thread(self._answer, name, known.view, topic)
                known.at = self._clock()
        return known.answer

    async def _read(self, known: _Learner, topic: str) -> None:
        self.readings += 1
        async with TopicReader(self._settings, [topic], "start") as reader:
            if any(known.ends.get(place, 0) > end for place, end in reader.ends.items()):
                known.view, known.ends = StateView({topic: ("counts", "totals")}), {}  # made anew
            starts = {p: max(known.ends.get(p, 0), begin) for p, begin in reader.begins.items()}
            reader.seek(starts)
            async for records in reader.present():
                known.view.take(records)
            known.ends = dict(reader.ends)

    def _answer(self, name: str, view: StateView, topic: str) -> bytes:
        totals = view.sums(topic, "totals").get(0)
        labelled = 0 if totals is None else int(totals[LABELLED])
        return orjson.dumps(near(self._settings, name, view.sums(topic, "counts"), labelled))
