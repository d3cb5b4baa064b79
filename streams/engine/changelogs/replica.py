"""Sums over all partitions of an agent, kept on every worker by following the shared changelogs.

Each partition counts only what it saw. Decisions use the sum: the partition's own table, including
what is not yet committed, plus the others' as committed. The sum over all partitions is updated
with each change, so reading it costs no more than reading one table.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import Ints
from streams.engine.cancellation import shielded
from streams.engine.changelogs.signing import Signer
from streams.engine.config import EngineConfig
from streams.engine.health import Cause, Symptom, broker_away
from streams.engine.state.counts import CountsTable
from streams.engine.state.entries import EntriesTable
from streams.engine.state.table import Table, reading, split_key
from streams.kafka.batch import Batch
from streams.kafka.client.answers import Answers
from streams.kafka.client.fetched import take_batches, wait_for_fetch
from streams.kafka.client.reader import bounds, partitions_of

_CHUNK = 1 << 20
_PAUSE = 1.0
_PARTLY = 1.5
"""When a broker goes away, everything goes unanswered, but not from the same moment on."""
_log = logging.getLogger(__name__)


class Replica:
    """Follows the shared tables of all partitions of one agent, as far as they are committed."""

    def __init__(
        self,
        config: EngineConfig,
        agent: str,
        tables: Sequence[Table],
        signer: Signer | None = None,
    ) -> None:
        self.version = 0
        """Grows with every change, so that values computed from the sums can be cached."""
        self._config = config
        self._signer = signer
        self._topic = config.shared_changelog(agent)
        self._topics = [self._topic]
        if any(table.secret for table in tables):
            self._topics.append(config.secret_changelog(agent))
        self._counts = {t.name: Sums(t) for t in tables if t.shared and isinstance(t, CountsTable)}
        self._entries: dict[str, dict[int, dict[bytes, bytes]]] = {
            t.name: {} for t in tables if t.shared and isinstance(t, EntriesTable)
        }
        self._consumer: Any = None
        self._answers: Answers | None = None
        self._turned = time.monotonic()
        self._follower: asyncio.Task[None] | None = None

    async def start(self) -> "asyncio.Task[None]":
        """Read what is committed now, and follow from there; return what follows."""
        consumer = self._config.reader(f"{self._topic}.replica", wait_ms=500)
        self._answers = Answers.of(consumer)
        try:
            await shielded(consumer.start())
            places = [
                TopicPartition(topic, number)
                for topic in self._topics
                for number in await shielded(partitions_of(consumer, topic))
            ]
            starts, ends = await shielded(bounds(consumer, places))
            consumer.assign(places)
            for place in places:
                consumer.seek(place, starts[place])
            while any([await consumer.position(place) < ends[place] for place in places]):
                await self._read(consumer)
        except BaseException:
            await consumer.stop()
            raise
        self._consumer = consumer
        self._follower = asyncio.create_task(self._follow(), name=f"replica of {self._topic}")
        return self._follower

    @property
    def still_for(self) -> float:
        """Return how many seconds ago the changelog was last read."""
        return time.monotonic() - self._turned if self._follower is not None else 0.0

    def symptoms(self) -> list[Symptom]:
        """Return what prevents it from following."""
        answers, limit = self._answers, self._config.silent_after
        if answers is None:
            return []
        if answers.silent_for > limit:
            return [broker_away(self._config.address)]
        silence = max(self.still_for, answers.unfetched_for)
        if silence <= _PARTLY * limit:
            return []
        text = f"{self._topic} has not been followed for {silence:.0f} s"
        return [Symptom(Cause.NOT_FOLLOWING, text)]

    async def _follow(self) -> None:
        while True:
            self._turned = time.monotonic()
            try:
                await self._read_on()
            except KafkaError as error:
                _log.warning("%s cannot be followed now: %s", self._topic, type(error).__name__)
                await asyncio.sleep(_PAUSE)

    async def _read_on(self) -> None:
        try:
            await self._read(self._consumer)
        except OffsetOutOfRangeError as error:
            _log.warning("%s was cut or recreated; it is read again from its start", self._topic)
            starts = await shielded(self._consumer.beginning_offsets(error.args[0]))
            for place, start in starts.items():
                self._consumer.seek(place, start)

    async def _read(self, consumer: Any) -> None:
        """Apply what was fetched; wait a little if there is nothing."""
        batches = take_batches(consumer, consumer.assignment(), _CHUNK)
        for batch in batches:
            self.apply(batch)
            await asyncio.sleep(0)
        if not batches:
            await wait_for_fetch(consumer, 0.5)

    def apply(self, batch: Batch) -> None:
        """Apply a piece of a changelog."""
        if self._signer is not None:
            self._signer.check(batch)
        latest: dict[str, dict[bytes, bytes | None]] = {}
        with reading(f"the changelog {batch.topic}/{batch.partition}"):
            for key, value in zip(batch.keys, batch.values, strict=True):
                name, row_key = split_key(key or b"")
                latest.setdefault(name, {})[row_key] = value
            for name, changes in latest.items():
                if name in self._counts:
                    self._counts[name].apply(batch.partition, changes)
                elif name in self._entries:
                    _apply(self._entries[name].setdefault(batch.partition, {}), changes)
        self.version += bool(latest)

    def others(self, partition: int) -> "Others":
        """Return the view of one partition: everything but its own."""
        return Others(self, partition)

    def counts(self, table: str) -> "Sums":
        """Return the sums of a table of counts."""
        return self._counts[table]

    def entries(self, table: str) -> Mapping[int, Mapping[bytes, bytes]]:
        """Return the entries of a shared table by partition."""
        return self._entries[table]

    async def close(self) -> None:
        """Stop following."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
        if self._consumer is not None:
            await self._consumer.stop()


class Sums:
    """A table of counts per partition, and the sum over all partitions."""

    def __init__(self, like: CountsTable) -> None:
        self._like = like
        self.parts: dict[int, CellTable] = {}
        self.total = like.empty()

    def apply(self, partition: int, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply the new rows of some cells of a partition."""
        current = {key: value for key, value in changes.items() if value is not None}
        if not current:
            return
        cells, rows = self._like.decode(list(current), list(current.values()))
        part = self.part(partition)
        if self._like.adds:
            self.total.add(cells, rows - part.rows(cells))
        part.put(cells, rows)

    def part(self, partition: int) -> CellTable:
        """Return what one partition has committed."""
        part = self.parts.get(partition)
        if part is None:
            part = self.parts[partition] = self._like.empty()
        return part


class Others:
    """What all partitions but one have counted."""

    def __init__(self, replica: Replica, partition: int) -> None:
        self._replica, self._partition = replica, partition

    @property
    def version(self) -> int:
        """Return a number that grows with every change."""
        return self._replica.version

    def rows(self, table: str, cells: Ints) -> Rows:
        """Return the sum over the other partitions for some cells."""
        sums = self._replica.counts(table)
        rows: Rows = sums.total.rows(cells) - sums.part(self._partition).rows(cells)
        return rows

    def parts(self, table: str, cells: Ints) -> list[Rows]:
        """Return the rows of some cells in each of the other partitions."""
        parts = self._replica.counts(table).parts
        return [part.rows(cells) for number, part in parts.items() if number != self._partition]

    def items(self, table: str) -> tuple[Ints, Rows]:
        """Return the sum over the other partitions for all cells that any of them has written."""
        cells, _ = self._replica.counts(table).total.items()
        return cells, self.rows(table, cells)

    def entries(self, table: str) -> dict[int, Mapping[bytes, bytes]]:
        """Return the entries of the other partitions, by partition."""
        entries = self._replica.entries(table)
        return {number: rows for number, rows in entries.items() if number != self._partition}


def _apply(rows: dict[bytes, bytes], changes: Mapping[bytes, bytes | None]) -> None:
    for key, value in changes.items():
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
