"""What the engine's tests share: a small agent, a way to run it without Faust, and a reader."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from schemas.errors import RecordError
from schemas.refusals import Reason
from streams.engine import AgentSpec, Batch, EngineConfig, Outbox, Processor, TaskContext
from streams.engine.health import Symptom
from streams.engine.observer import SILENT, Observer
from streams.engine.state import CountsTable, EntriesTable
from streams.engine.tasks.commit import Hook, no_hook
from streams.engine.tasks.group import TaskGroup
from streams.kafka.client.fetched import take_batches, wait_for_fetch

CELLS = 50
PATIENCE = 120.0
"""Seconds to wait for what must happen: far more than it takes, even on a busy machine."""
START = time.time_ns() // 1_000_000
"""The time of the first record. Brokers remove what is older than a topic's retention."""


class Counting(Processor):
    """Counts ids per cell, keeps each id's running number, and outputs both for each record."""

    def __init__(self, context: TaskContext, output: str) -> None:
        self.output = output
        self.counts: CountsTable = context.tables["counts"]
        self.seen: EntriesTable = context.tables["seen"]

    def process(self, batch: Batch, out: Outbox) -> None:
        keys, values, times, cells = [], [], [], []
        for index, value in enumerate(batch.values):
            try:
                number = orjson.loads(value or b"")["id"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                out.dead(batch, index, RecordError(Reason.MALFORMED, "expected an id"))
                continue
            if number == -1:
                raise RuntimeError("a bug met a record")
            key = b"%d" % number
            before = int(self.seen.get(key) or b"0")
            self.seen.put(key, b"%d" % (before + 1))
            keys.append(key)
            values.append(orjson.dumps({"id": number, "before": before}))
            times.append(batch.timestamps[index])
            cells.append(number % CELLS)
        if cells:
            self.counts.add(np.array(cells), np.ones((len(cells), 1), np.int64))
            out.emit_many(self.output, keys, values, times)


def spec(prefix: str, *, inputs: tuple[str, ...] = ("in",), name: str = "count") -> AgentSpec:
    return AgentSpec(
        name,
        tuple(prefix + topic for topic in inputs),
        lambda: [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")],
        lambda context: Counting(context, prefix + "out"),
    )


def config(address: str, prefix: str, folder: Path, **changes: Any) -> EngineConfig:
    base = EngineConfig(
        prefix.rstrip("."),
        prefix,
        {"bootstrap_servers": address},
        folder,
        prefix + "dead",
        request_timeout=10.0,
        backoff=0.1,
        tick=0.05,
    )
    return dataclasses.replace(base, **changes)


async def create_topics(
    address: str,
    config: EngineConfig,
    specs: Iterable[AgentSpec],
    *topics: str,
    partitions: int = 1,
) -> None:
    names = {config.deadletters, *topics}
    logs = set()
    for agent in specs:
        names |= set(agent.inputs)
        logs |= {config.changelog(agent.name), config.shared_changelog(agent.name)}
        if any(table.secret for table in agent.tables()):
            logs.add(config.secret_changelog(agent.name))
    compact = {"cleanup.policy": "compact"}
    # These tests' records are from 1970: with a retention the broker would soon delete them.
    forever = {"retention.ms": "-1"}
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics(
            [NewTopic(name, partitions, 1, topic_configs=forever) for name in names]
            + [NewTopic(name, partitions, 1, topic_configs=compact) for name in logs]
        )
    finally:
        await admin.close()


async def produce(
    address: str, topic: str, values: Iterable[bytes | None], partition: int = 0
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=address, linger_ms=5, max_batch_size=256 << 10)
    async with producer:
        batch = producer.create_batch()
        for index, value in enumerate(values):
            item = {"timestamp": START + index, "key": b"k%d" % index, "value": value}
            if batch.append(**item) is None:
                await producer.send_batch(batch, topic, partition=partition)
                batch = producer.create_batch()
                batch.append(**item)
        await (await producer.send_batch(batch, topic, partition=partition))


def ids(numbers: Iterable[int]) -> list[bytes]:
    return [b'{"id":%d}' % number for number in numbers]


async def committed(address: str, topic: str) -> list[Any]:
    """Return all committed records of a topic up to its current end."""
    async with _reader(address, "read_committed") as consumer:
        places = [
            TopicPartition(topic, number)
            for number in sorted(await consumer._client._wait_on_metadata(topic))
        ]
        consumer.assign(places)
        ends = await _decided(address, consumer, places)
        records = []
        for place in places:
            while await consumer.position(place) < ends[place]:
                for batch in (await consumer.getmany(place, timeout_ms=200)).values():
                    records += batch
        return records


def _reader(address: str, isolation: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


async def _decided(address: str, consumer: AIOKafkaConsumer, places: list[Any]) -> dict[Any, int]:
    """Return the ends of committed records, after waiting for transactions that are just ending.

    A commit is acknowledged when it is decided; its markers are written a moment later.
    """
    async with _reader(address, "read_uncommitted") as everything:
        ends = await everything.end_offsets(places)
    for _ in range(300):  # not forever: a transaction may be open on purpose
        stable = await consumer.end_offsets(places)
        if all(stable[place] >= end for place, end in ends.items()):
            break
        await asyncio.sleep(0.02)
    return stable


class DirectSource:
    """Feeds a group from a plain consumer, as the transport does from Faust's consumer."""

    def __init__(self, config: EngineConfig, group: TaskGroup) -> None:
        self._config, self._group = config, group
        self._consumer: Any = None
        self._loop: asyncio.Task[None] | None = None
        group.connect(self)

    async def start(self, partitions: Iterable[int]) -> None:
        self._consumer = self._config.reader("direct")
        await self._consumer.start()
        places = [TopicPartition(t, p) for t in self._group.topics for p in partitions]
        self._consumer.assign(places)
        for place in places:
            self._consumer.seek(place, 0)
        await self._group.assign([tuple(place) for place in places])
        self._loop = asyncio.create_task(self._fetch())

    async def _fetch(self) -> None:
        while True:
            wanted = [p for p in self._consumer.assignment() if self._group.wants(*p)]
            batches = take_batches(self._consumer, wanted, 1 << 20)
            for batch in batches:
                self._group.deliver(batch)
            if batches:
                await asyncio.sleep(0)
            else:
                await wait_for_fetch(self._consumer, 0.02)

    async def stop(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        await self._consumer.stop()

    async def rewind(self, partition: int, positions: Mapping[str, int]) -> None:
        for topic, offset in positions.items():
            self._consumer.seek(TopicPartition(topic, partition), offset)

    def end_of(self, topic: str, partition: int) -> int | None:
        end: int | None = self._consumer.last_stable_offset(TopicPartition(topic, partition))
        return end

    def written_to(self, topic: str, partition: int) -> int | None:
        end: int | None = self._consumer.highwater(TopicPartition(topic, partition))
        return end

    async def confirmed(self) -> None:
        pass  # it belongs to no group

    def symptoms(self) -> list[Symptom]:
        return []

    still_for = 0.0

    def wake(self) -> None:
        pass


@contextlib.asynccontextmanager
async def running(
    config: EngineConfig,
    agent: AgentSpec,
    partitions: Iterable[int] = (0,),
    hook: Hook = no_hook,
    observer: Observer = SILENT,
) -> AsyncIterator[TaskGroup]:
    """Run an agent's tasks; leave cleanly."""
    group = TaskGroup(config, [agent], hook=hook, observer=observer)
    source = DirectSource(config, group)
    await source.start(partitions)
    try:
        yield group
    finally:
        await group.close()
        await source.stop()


async def until(condition: Any, seconds: float = PATIENCE) -> None:
    """Wait until a condition holds; fail loudly if it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # the caller's condition cannot be awaited
            await asyncio.sleep(0.01)


def done(group: TaskGroup, records: int) -> bool:
    return sum(status.records for status in group.statuses()) >= records
