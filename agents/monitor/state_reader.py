"""Keeps a view of the agents' state up to date with one consumer, reading as little as possible.

A small changelog is followed from its start. Of the others only a few keys matter, which every
batch rewrites (positions, totals): they are near the end, so the search starts there, and what lies
between two readings is skipped. Nothing is read where nothing is new.
"""

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Self, TypeVar

from aiokafka import TopicPartition
from aiokafka.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from agents.clients.topic_reader import outside_consumer
from agents.monitor.state_view import StateView
from settings.errors import BrokerError
from settings.model import Settings
from streams.kafka.client.fetched import take_batches, wait_for_fetch
from streams.kafka.client.reader import get_to_know, high_watermarks
from streams.kafka.connection import explained, explaining

_FIRST_STEP = 20
_GROWTH = 8
_CHUNK = 256 << 10
_WAIT_MS = 100
_PATIENCE = 15.0
"""How long a reading may take; the first may have more to read, and gets this for each batch."""


Value = TypeVar("Value")


class StateLostError(BrokerError):
    """A changelog ends before the offset up to which it was read: it was recreated."""


class StateReader:
    """Reads the changelogs of a view; an async context manager.

    whole   topics that are read from their start
    tails   the keys that are wanted of each other topic

    optional   topics without which the view is still of use, where they may not be read

    A key of `tails` that no batch has written yet is searched for back to the start of its topic,
    or to where the last reading ended.
    """

    def __init__(
        self,
        settings: Settings,
        view: StateView,
        whole: Collection[str],
        tails: Mapping[str, Collection[bytes]],
        optional: Collection[str] = (),
    ) -> None:
        self._optional = frozenset(optional)
        self._settings, self._broker, self._view = settings, settings.broker, view
        self._tails = {topic: frozenset(keys) for topic, keys in tails.items()}
        self._topics = [*whole, *(topic for topic in tails if topic not in whole)]
        self._places = [
            TopicPartition(topic, number)
            for topic in self._topics
            for number in range(settings.topics.partitions)
        ]
        self._read_to: dict[Any, int] = {}
        self._consumer: Any = None
        self.busy = 0.0
        """Processor seconds spent on applying records, over all readings."""

    async def __aenter__(self) -> Self:
        self._broker, self._consumer = await outside_consumer(
            self._settings,
            self._topics,
            # A position that the log no longer has must be noticed, not moved silently.
            auto_offset_reset="none",
            # A tail is one record batch of a transaction; reading more would be wasted.
            max_partition_fetch_bytes=1 << 20,
            # aiokafka keeps one fetch per broker in flight: a reading waits until it is answered.
            fetch_max_wait_ms=_WAIT_MS,
        )
        try:
            await self._consumer.start()
            self._consumer.assign(self._places)
            self._read_to = await self._consumer.beginning_offsets(self._places)
            for place, begin in self._read_to.items():
                self._consumer.seek(place, begin)
            self._consumer.pause(*self._places)
        except (KafkaError, TimeoutError) as error:
            await self._consumer.stop()
            raise explained(error, self._broker) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    async def get_to_know(self, places: Collection[Any]) -> None:
        """Prepare to be asked about partitions of other topics."""
        with explaining(self._broker):
            async with asyncio.timeout(_PATIENCE):
                await get_to_know(self._consumer, {place.topic for place in places})

    async def begins(self, places: Collection[Any]) -> dict[Any, int]:
        """Return where some partitions, of any topic, begin."""
        return await self._asked(self._consumer.beginning_offsets(places))

    async def ends(self, places: Collection[Any]) -> dict[Any, int]:
        """Return where some partitions, of any topic, end."""
        return await self._asked(self._consumer.end_offsets(places))

    async def written(self, places: Collection[Any]) -> dict[Any, int]:
        """Return where some partitions, of any topic, end with what is not decided yet."""
        return await self._asked(high_watermarks(self._consumer, places))

    async def since(self, places: Collection[Any], millis: int) -> set[Any]:
        """Return those partitions, of any topic, that have records from that time on."""
        times = dict.fromkeys(places, millis)
        offsets = await self._asked(self._consumer.offsets_for_times(times))
        return {place for place, first in offsets.items() if first is not None}

    async def _asked(self, question: Awaitable[dict[Any, Value]]) -> dict[Any, Value]:
        with explaining(self._broker):
            async with asyncio.timeout(_PATIENCE):
                return await question

    async def look(self, known: Collection[Any] = ()) -> None:
        """Bring the view up to date, except for partitions that are known without reading."""
        places = [place for place in self._places if place not in known]
        if not places:
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                ends = await self._consumer.end_offsets(places)
            await self._catch_up(ends)
        except TopicAuthorizationFailedError as error:
            if error.args[0] not in self._optional:
                raise explained(error, self._broker) from error
            self._leave_out(error.args[0])
            await self.look(known)
        except OffsetOutOfRangeError as error:
            raise StateLostError("a changelog begins later than before") from error
        except (KafkaError, TimeoutError) as error:
            raise explained(error, self._broker) from error

    def _leave_out(self, topic: str) -> None:
        """Do without a topic that this user may not read."""
        self._places = [place for place in self._places if place.topic != topic]
        self._consumer.assign(self._places)
        for place in self._places:
            self._consumer.seek(place, self._read_to[place])
        self._consumer.pause(*self._places)

    def skip(self, offsets: Mapping[Any, int]) -> None:
        """Note that the view has some partitions up to these offsets by other means."""
        for place, offset in offsets.items():
            self._read_to[place] = max(self._read_to[place], offset)

    async def _catch_up(self, ends: dict[Any, int]) -> None:
        if any(end < self._read_to[place] for place, end in ends.items()):
            raise StateLostError("a changelog is shorter than before")
        behind = [place for place, end in ends.items() if self._read_to[place] < end]
        keys = {p: set(self._tails[p.topic]) for p in behind if p.topic in self._tails}
        first, step = {p: self._read_to[p] for p in behind}, _FIRST_STEP
        first |= {p: max(first[p], ends[p] - step) for p in keys}
        await self._read(first, ends, keys)
        while missing := [p for p, left in keys.items() if left and first[p] > self._read_to[p]]:
            step *= _GROWTH
            first |= {p: max(self._read_to[p], ends[p] - step) for p in missing}
            await self._read({p: first[p] for p in missing}, ends, keys)
        self._read_to.update(ends)

    async def _read(
        self, first: Mapping[Any, int], ends: Mapping[Any, int], keys: Mapping[Any, set[bytes]]
    ) -> None:
        """Apply everything from `first` to `ends`; drop the keys that turn up from `keys`."""
        left = dict(first)
        for place, offset in left.items():
            self._consumer.seek(place, offset)
            self._consumer.resume(place)
        try:
            while left:
                async with asyncio.timeout(_PATIENCE):
                    left |= await self._take(list(left), keys)
                for place in [p for p, at in left.items() if at >= ends[p]]:
                    del left[place]
                    self._consumer.pause(place)
        finally:
            for place in first:
                self._consumer.pause(place)
                # What was fetched beyond the end would delay the next reading.
                self._consumer.seek(place, ends[place])

    async def _take(self, places: list[Any], keys: Mapping[Any, set[bytes]]) -> dict[Any, int]:
        """Wait for records of some partitions and apply them; return where each continues."""
        began = time.thread_time()
        while not (batches := take_batches(self._consumer, places, _CHUNK)):
            await wait_for_fetch(self._consumer, 0.5)
            began = time.thread_time()
        after = {}
        for batch in batches:
            place = TopicPartition(batch.topic, batch.partition)
            present = self._view.take_batch(batch)
            if place in keys:
                keys[place] -= present
            after[place] = batch.next
            self.busy += time.thread_time() - began
            await asyncio.sleep(0)  # lets other tasks of the event loop run in between
            began = time.thread_time()
        return after
