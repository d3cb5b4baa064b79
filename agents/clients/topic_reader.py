"""Reads topics outside any consumer group: committed records only, from any offset."""

from collections.abc import AsyncIterator, Collection
from typing import Any, Literal, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.clients.sender import check_topics
from settings.client_settings import AnySettings
from settings.sections.broker import BrokerSettings
from streams.kafka.connection import explaining, quiet_client
from streams.kafka.security import client_arguments, located

_WAIT_MS = 500
_MOST = 4_000
_LONGEST = 64_000
"""Records of a partition that are held at once when it is read backwards."""


async def outside_consumer(
    settings: AnySettings, topics: Collection[str], **options: Any
) -> tuple[BrokerSettings, Any]:
    """Check that topics exist; return the broker's settings, and a consumer without a group."""
    quiet_client()
    broker = located(settings.broker)
    await check_topics(settings, topics)
    return broker, AIOKafkaConsumer(
        **client_arguments(broker),
        isolation_level="read_committed",
        enable_auto_commit=False,
        **options,
    )


class TopicReader:
    """Reads all partitions of some topics.

    since        "end": what is committed after it was entered; "start": everything that is kept
    fetch_bytes  how much of a partition is fetched at a time
    only         some partitions instead of all
    """

    def __init__(
        self,
        settings: AnySettings,
        topics: Collection[str],
        since: Literal["start", "end"] = "end",
        *,
        fetch_bytes: int = 4 << 20,
        only: Collection[int] | None = None,
    ) -> None:
        self._fetch_bytes = fetch_bytes
        self._settings = settings
        self._broker = settings.broker
        self._since = since
        self._topics = topics
        self._places = [
            TopicPartition(topic, number)
            for topic in topics
            for number in (range(settings.topics.partitions) if only is None else only)
        ]
        self._consumer: Any = None

    async def __aenter__(self) -> Self:
        self._broker, self._consumer = await outside_consumer(
            self._settings,
            self._topics,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=_WAIT_MS,
            max_partition_fetch_bytes=self._fetch_bytes,
        )
        try:
            await self._begin()
        except BaseException:
            await self._consumer.stop()
            raise
        return self

    async def _begin(self) -> None:
        with explaining(self._broker):
            await self._consumer.start()
            self._consumer.assign(self._places)
            self.begins, self.ends = await self._bounds()
            first = self.ends if self._since == "end" else self.begins
            self.seek(first)

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    async def _bounds(self) -> tuple[dict[Any, int], dict[Any, int]]:
        begins = await self._consumer.beginning_offsets(self._places)
        return begins, await self._consumer.end_offsets(self._places)

    async def end(self, topic: str, partition: int) -> int:
        """Return where a partition ends now."""
        place = TopicPartition(topic, partition)
        with explaining(self._broker):
            ends: dict[Any, int] = await self._consumer.end_offsets([place])
        return ends[place]

    async def since(self, millis: int) -> dict[Any, int]:
        """Return where each partition has its first record from a time on; its end if none."""
        with explaining(self._broker):
            offsets = await self._consumer.offsets_for_times(dict.fromkeys(self._places, millis))
        return {
            place: self.ends[place] if first is None else first.offset
            for place, first in offsets.items()
        }

    async def offset_at(self, topic: str, partition: int, at: int) -> int | None:
        """Return the offset of the first record of a time or later; None if there is none."""
        place = TopicPartition(topic, partition)
        with explaining(self._broker):
            offsets = await self._consumer.offsets_for_times({place: at})
        return None if offsets[place] is None else int(offsets[place].offset)

    async def renew(self) -> None:
        """Update where the topics begin and end."""
        with explaining(self._broker):
            self.begins, self.ends = await self._bounds()

    def seek(self, offsets: dict[Any, int]) -> None:
        """Continue reading at these offsets."""
        for place, offset in offsets.items():
            self._consumer.seek(place, offset)

    def rest(self) -> None:
        """Fetch nothing until `wake`: a consumer fetches ahead even if its records are not read."""
        self._consumer.pause(*self._places)

    def wake(self) -> None:
        """Fetch again."""
        self._consumer.resume(*self._places)

    async def read(self, wait: float = _WAIT_MS / 1000) -> list[Any]:
        """Return the next records, waiting a little for the first of them."""
        with explaining(self._broker):
            batches = await self._consumer.getmany(timeout_ms=int(wait * 1000), max_records=_MOST)
        return [record for records in batches.values() for record in records]

    async def present(self) -> AsyncIterator[list[Any]]:
        """Yield the records from here to the ends as they were when the reader was entered.

        Later records are left to be read next.
        """
        while left := await self._unread():
            with explaining(self._broker):
                batches = await self._consumer.getmany(
                    *left, timeout_ms=_WAIT_MS, max_records=_MOST
                )
            for place, records in batches.items():
                end = self.ends[place]
                if records[-1].offset >= end:
                    self._consumer.seek(place, end)
                yield [record for record in records if record.offset < end]

    async def _unread(self) -> list[Any]:
        with explaining(self._broker):
            at = {place: await self._consumer.position(place) for place in self._places}
        return [place for place, end in self.ends.items() if at[place] < end]

    async def backwards(self, step: int = 1_000) -> AsyncIterator[list[Any]]:
        """Yield the records of a partition in pieces that grow, the newest piece first.

        Inside a piece they are in order. A caller that stops early has read only the newest.
        """
        whole, after = self.ends, dict(self.ends)
        try:
            while any(after[place] > self.begins[place] for place in after):
                first = {p: max(self.begins[p], end - step) for p, end in after.items()}
                self.ends = after
                self.seek(first)
                yield [record async for records in self.present() for record in records]
                after, step = first, min(2 * step, _LONGEST)
        finally:
            self.ends = whole

    async def last(self, count: int) -> list[Any]:
        """Return the last `count` records of all partitions together, oldest first."""
        step = 2 * count + 100
        while True:
            first = {p: max(self.begins[p], self.ends[p] - step) for p in self._places}
            self.seek(first)
            newest = [record async for records in self.present() for record in records]
            # Transaction markers take up offsets too, so it may take another attempt.
            if len(newest) >= count or first == self.begins:
                newest.sort(key=lambda record: record.timestamp)
                return newest[-count:] if count else []
            step *= 4
