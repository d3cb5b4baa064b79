"""The clients that write odd records: aiokafka with hand-made bytes, confluent-kafka, kcat."""

import asyncio
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from bench.hostile.odd_records import BULKY, KINDS, REFUSED, Odd
from bench.hostile.wire import Raw, record_batch
from settings.errors import HbError
from streams.clock import wall
from streams.kafka.partitions import partition_of

_RECORD_END, _KEY_END = "\\x01\\x02\\x03", "\\x04\\x05\\x06"
_UNDER_WAY = 64
_TOGETHER = 20
_LARGEST = 8 << 20
_WAIT_MS = 300_000
"""Long enough for a busy machine: a record not answered in time would count as refused."""
_ENDS = tuple(
    bytes(end, "ascii").decode("unicode_escape").encode() for end in (_RECORD_END, _KEY_END)
)


def place(odd: Odd, partitions: int) -> int:
    """Return the partition that a record goes to."""
    own = partition_of(odd.id.encode(), partitions)
    return (own + 1) % partitions if odd.misplaced else own


async def by_aiokafka(address: str, records: Sequence[Odd], partitions: int) -> set[int]:
    """Write records as hand-made bytes; return the numbers of those that were refused."""
    refused: set[int] = set()
    free = asyncio.Semaphore(_UNDER_WAY)

    async def write(producer: Any, topic: str, partition: int, odds: Sequence[Odd]) -> None:
        now, batch = wall(), producer.create_batch()
        times = [now if odd.timestamp is None else odd.timestamp for odd in odds]
        rows = zip(times, odds, strict=True)
        batch._buffer = record_batch(*(Raw(at, o.key, o.value, o.headers) for at, o in rows))
        batch._relative_offset = len(odds)
        batch.close()
        try:
            await (await producer.send_batch(batch, topic, partition=partition))
        except KafkaError:
            refused.update(odd.number for odd in odds)
        finally:
            free.release()

    client = AIOKafkaProducer(
        bootstrap_servers=address, max_request_size=_LARGEST, request_timeout_ms=_WAIT_MS
    )
    async with client as producer, asyncio.TaskGroup() as group:
        for topic, partition, odds in _grouped(records, partitions):
            await free.acquire()
            group.create_task(write(producer, topic, partition, odds))
    return refused


def _grouped(records: Sequence[Odd], partitions: int) -> Iterator[tuple[str, int, Sequence[Odd]]]:
    """Yield the records of each batch: brokers refuse whole batches, so some records go alone."""
    groups: dict[Any, list[Odd]] = defaultdict(list)
    for odd in records:
        alone = REFUSED in KINDS[odd.kind].outcomes or odd.kind in BULKY
        groups[odd.topic, place(odd, partitions), odd.number if alone else -1].append(odd)
    for (topic, partition, _), odds in groups.items():
        for start in range(0, len(odds), _TOGETHER):
            yield topic, partition, odds[start : start + _TOGETHER]


def by_confluent(address: str, records: Sequence[Odd], partitions: int) -> set[int]:
    """Write records with librdkafka, each with its own codec; return what was refused."""
    from confluent_kafka import KafkaException, Producer

    refused: set[int] = set()
    producers: dict[str, Any] = {}
    for odd in records:
        # A broker refuses a whole batch for one of its records, so such a record goes alone.
        alone = REFUSED in KINDS[odd.kind].outcomes
        name = f"{odd.codec} {alone}"
        if name not in producers:
            producers[name] = Producer(
                {
                    "bootstrap.servers": address,
                    "compression.type": odd.codec,
                    "message.max.bytes": _LARGEST,
                    "linger.ms": 5,
                    "batch.num.messages": 1 if alone else 100,
                    "log_level": 0,
                }
            )
        producer = producers[name]

        def heard(error: Any, _message: Any, number: int = odd.number) -> None:
            if error is not None:
                refused.add(number)

        try:
            producer.produce(
                odd.topic,
                odd.value,
                odd.key,
                place(odd, partitions),
                on_delivery=heard,
                timestamp=odd.timestamp or 0,
                headers=[(name.decode(), content) for name, content in odd.headers],
            )
        except (KafkaException, BufferError):
            refused.add(odd.number)
        producer.poll(0)
    for producer in producers.values():
        producer.flush()
    return refused


async def by_kcat(address: str, records: Sequence[Odd], partitions: int) -> set[int]:
    """Write records with kcat, one process per topic, partition, codec and headers."""
    program = shutil.which("kcat")
    if program is None:
        raise HbError("kcat is not installed; it is the Debian package kcat")
    groups: dict[Any, list[Odd]] = defaultdict(list)
    for odd in records:
        groups[odd.topic, place(odd, partitions), odd.codec, odd.headers].append(odd)
    refused: set[int] = set()
    for (topic, partition, codec, headers), odds in groups.items():
        command = [program, "-P", "-q", "-b", address, "-t", topic, "-p", str(partition), "-Z"]
        command += ["-D", _RECORD_END, "-K", _KEY_END, "-z", codec]
        named = [
            part for name, content in headers for part in (b"-H", name + b"=" + (content or b""))
        ]
        process = await asyncio.create_subprocess_exec(
            *command, *named, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        lines = [(odd.key or b"") + _ENDS[1] + (odd.value or b"") for odd in odds]
        await process.communicate(_ENDS[0].join(lines))
        if process.returncode:
            refused |= {odd.number for odd in odds}
    return refused
