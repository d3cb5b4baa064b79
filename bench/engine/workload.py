"""Topics, input and measurement for benchmarks of stream processors on one broker.

A rival's speed is read from the broker's timestamps on the second half of its outputs. So start-up
and warm-up do not count, nothing else runs at the same time, and no contender measures itself.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bench.engine.peers import CELLS
from settings.errors import HbError

_FEATURES = b"[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95]"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one rival."""

    records: int
    outputs: int
    distinct: int
    seconds: float
    rate: float


async def create(
    address: str, names: Sequence[str], config: Mapping[str, str] | None = None, partitions: int = 1
) -> None:
    """Create topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        topics = [NewTopic(name, partitions, 1, topic_configs=dict(config or {})) for name in names]
        await admin.create_topics(topics)
    finally:
        await admin.close()


async def fill(address: str, topic: str, records: int) -> None:
    """Write the input: records of about 60 bytes, keyed by cell (some rivals keep state by key)."""
    producer = AIOKafkaProducer(bootstrap_servers=address, max_batch_size=500_000, acks="all")
    async with producer:
        batch = producer.create_batch()
        for number in range(records):
            key, value = b"%d" % (number % CELLS), b'{"id":%d,"x":%s}' % (number, _FEATURES)
            if batch.append(timestamp=None, key=key, value=value) is None:
                await producer.send_batch(batch, topic, partition=0)
                batch = producer.create_batch()
                batch.append(timestamp=None, key=key, value=value)
        await (await producer.send_batch(batch, topic, partition=0))


async def wait_for_outputs(address: str, topic: str, records: int, patience: float) -> None:
    """Wait until a topic holds that many records; raise if it stalls for `patience` seconds."""
    place = TopicPartition(topic, 0)
    async with _reader(address) as consumer:
        previous, since = -1, time.monotonic()
        while True:
            end = (await consumer.end_offsets([place]))[place]
            if end >= records:
                return
            if end != previous:
                previous, since = end, time.monotonic()
            if time.monotonic() - since > patience:
                raise HbError(f"{topic} stood still at {end} of {records} records")
            await asyncio.sleep(0.1)


async def measure(address: str, topic: str, records: int) -> Result:
    """Read a rival's outputs back and return how fast they were written."""
    place = TopicPartition(topic, 0)
    stamps: Counter[int] = Counter()
    ids: set[int] = set()
    async with _reader(address) as consumer:
        end = (await consumer.end_offsets([place]))[place]
        consumer.assign([place])
        consumer.seek(place, 0)
        while await consumer.position(place) < end:
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                stamps.update(record.timestamp for record in batch)
                ids.update(orjson.loads(record.value)["id"] for record in batch)
    seconds, rate = speed(stamps)
    return Result(records, stamps.total(), len(ids), seconds, rate)


def speed(stamps: Mapping[int, int]) -> tuple[float, float]:
    """Return seconds and records per second of the second half, from records per millisecond.

    >>> speed({1_000: 100, 2_000: 500, 3_000: 300, 4_000: 300})
    (2.0, 300.0)
    """
    half, before, start = sum(stamps.values()) / 2, 0, 0
    for start in sorted(stamps):
        before += stamps[start]
        if before >= half:
            break
    seconds = (max(stamps) - start) / 1000
    return seconds, (sum(stamps.values()) - before) / seconds if seconds else float("nan")


def _reader(address: str) -> Any:
    return AIOKafkaConsumer(
        bootstrap_servers=address, isolation_level="read_committed", enable_auto_commit=False
    )
