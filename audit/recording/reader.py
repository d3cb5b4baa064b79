"""Reads back what the topics hold: everything committed, once, without disturbing anything.

A reader outside any consumer group leaves no trace on the broker. It reads a partition of a topic
from its start to an end that is fixed beforehand, and hands each batch on to be turned into columns
(`audit.recording.topic_logs`), so that no more than one batch is held in its encoded form.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from audit.recording.batch_slices import upto
from settings.model import Settings
from streams.engine.config import engine_config
from streams.kafka.batch import Batch
from streams.kafka.client.reader import TopicMissingError, bounds, partitions_of, read_to
from streams.kafka.connection import await_broker, explaining, quiet_client
from streams.kafka.security import located

Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many offsets are done, and how many are known so far."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a topic partition that exists: offsets from `start` up to but not `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def cut(self) -> bool:
        """Whether the topic's retention has removed its beginning."""
        return self.start > 0


class Recording:
    """Reads topics of one ensemble. Make it with `opened`.

    Where `lenient`, a partition that does not exist is noted in `missing` and read as empty.
    """

    def __init__(self, consumer: Any, progress: Progress, *, lenient: bool = False) -> None:
        self._consumer = consumer
        self._progress = progress
        self._done = self._total = 0
        self._lenient = lenient
        self.missing: set[tuple[str, int]] = set()

    async def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic."""
        return await partitions_of(self._consumer, topic)

    async def spans(self, topics: Iterable[str], partition: int) -> dict[str, Span]:
        """Return what is there of some topics now; what is committed later is beyond the spans."""
        places = [TopicPartition(topic, partition) for topic in topics]
        try:
            starts, ends = await bounds(self._consumer, places)
        except TopicMissingError:
            if not self._lenient:
                raise
            return await self._spans_one_by_one(places)
        return {p.topic: Span(p.topic, partition, starts[p], ends[p]) for p in places}

    async def _spans_one_by_one(self, places: Iterable[Any]) -> dict[str, Span]:
        spans = {}
        for place in places:
            span = Span(place.topic, place.partition, 0, 0)
            try:
                starts, ends = await bounds(self._consumer, [place])
                span = Span(place.topic, place.partition, starts[place], ends[place])
            except TopicMissingError:
                self.missing.add((place.topic, place.partition))
            spans[place.topic] = span
        return spans

    async def read(self, span: Span, use: Callable[[Batch], None]) -> None:
        """Hand the committed records of a span to `use`, in order."""
        position = span.start
        self._total += max(span.end - span.start, 0)

        async def take(batch: Batch) -> None:
            nonlocal position
            use(upto(batch, span.end))
            self._done += min(batch.next, span.end) - position
            position = min(batch.next, span.end)
            self._progress(span.topic, self._done, self._total)

        place = TopicPartition(span.topic, span.partition)
        await read_to(self._consumer, place, span.start, span.end, take)


@asynccontextmanager
async def opened(
    settings: Settings, name: str, progress: Progress = silent, *, lenient: bool = False
) -> AsyncIterator[Recording]:
    """Give a recording of the ensemble's topics; errors of the client become BrokerErrors."""
    quiet_client()
    broker = located(settings.broker)
    await await_broker(broker)
    config = engine_config(settings.model_copy(update={"broker": broker}))
    consumer = config.reader(f"{settings.name}.{name}")
    try:
        with explaining(broker):
            await consumer.start()
            yield Recording(consumer, progress, lenient=lenient)
    finally:
        await consumer.stop()
