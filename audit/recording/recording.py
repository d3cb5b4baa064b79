"""What the topics hold, read back: everything committed, once, without disturbing anybody.

A reader outside any consumer group leaves no trace on the broker. It reads a partition of a topic
from its start to an end that is fixed beforehand, and hands batches to whoever makes columns of
them (`audit.recording.topic_columns`), so that at no time more than one batch is held as it
travels.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from settings.model import Settings
from streams.faust.app import engine_config
from streams.kafka.batch import Batch
from streams.kafka.client.reader import bounds, partitions_of, read_to
from streams.kafka.connection import await_broker, explained, quiet_client
from streams.kafka.security import located

Progress = Callable[[str, int, int], None]
"""Told what is being read, how many offsets are done, and how many there are to do by now."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a topic partition that is there: offsets from `start` up to, without, `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def cut(self) -> bool:
        """Whether the topic's retention has removed its beginning."""
        return self.start > 0


class Recording:
    """Reads topics of one ensemble. Make it with `opened`."""

    def __init__(self, consumer: Any, progress: Progress) -> None:
        self._consumer = consumer
        self._progress = progress
        self._done = self._total = 0

    async def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic."""
        return await partitions_of(self._consumer, topic)

    async def spans(self, topics: Iterable[str], partition: int) -> dict[str, Span]:
        """Return what is there of some topics now; what is committed later is beyond the spans."""
        places = [TopicPartition(topic, partition) for topic in topics]
        starts, ends = await bounds(self._consumer, places)
        return {p.topic: Span(p.topic, partition, starts[p], ends[p]) for p in places}

    async def read(self, span: Span, use: Callable[[Batch], None]) -> None:
        """Hand the committed records of a span to `use`, in order."""
        done = span.start
        self._total += max(span.end - span.start, 0)

        async def take(batch: Batch) -> None:
            nonlocal done
            use(upto(batch, span.end))
            self._done += min(batch.next, span.end) - done
            done = min(batch.next, span.end)
            self._progress(span.topic, self._done, self._total)

        place = TopicPartition(span.topic, span.partition)
        await read_to(self._consumer, place, span.start, span.end, take)


def upto(batch: Batch, end: int) -> Batch:
    """Return the part of a batch before offset `end`."""
    if batch.next <= end:
        return batch
    kept = sum(offset < end for offset in batch.offsets)
    return replace(
        batch,
        next=end,
        offsets=batch.offsets[:kept],
        timestamps=batch.timestamps[:kept],
        keys=batch.keys[:kept],
        values=batch.values[:kept],
        headers={i: headers for i, headers in batch.headers.items() if i < kept},
    )


@asynccontextmanager
async def opened(
    settings: Settings, name: str, progress: Progress = silent
) -> AsyncIterator[Recording]:
    """Give a recording of the ensemble's topics; errors of the client become BrokerErrors."""
    quiet_client()
    broker = located(settings.broker)
    await await_broker(broker)
    config = engine_config(settings.model_copy(update={"broker": broker}))
    consumer = config.reader(f"{settings.name}.{name}")
    try:
        await consumer.start()
        yield Recording(consumer, progress)
    except (KafkaError, TimeoutError) as error:
        raise explained(error, broker) from error
    finally:
        await consumer.stop()
