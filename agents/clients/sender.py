"""Sends plain records to the broker: keyed by instance id, each written once, many per batch.

Keys are hashed as in Kafka's own Java client (murmur2), so that one partition follows the patient,
no matter who publishes.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

from aiokafka import AIOKafkaProducer

from settings.client_settings import AnySettings
from settings.errors import BrokerError
from streams.kafka.connection import NotAllowedError, admin_client, explaining, quiet_client
from streams.kafka.partitions import partition_of
from streams.kafka.security import client_arguments, located

Headers = Sequence[tuple[str, bytes | None]]

_BATCH_BYTES = 256 << 10
_UNDER_WAY = 32
"""Batches that may be in flight at a time, which bounds memory."""


class Sender:
    """A producer for `topics`, which must exist with the partitions that the settings declare."""

    def __init__(self, settings: AnySettings, topics: Collection[str]) -> None:
        self._settings = settings
        self._broker = settings.broker
        self._topics = topics
        self._partitions = settings.topics.partitions
        self._producer: Any = None
        self._under_way: deque[asyncio.Future[Any]] = deque()

    async def __aenter__(self) -> Self:
        quiet_client()
        self._broker = located(self._settings.broker)
        await check_topics(self._settings, self._topics)
        self._producer = AIOKafkaProducer(
            **client_arguments(self._broker), enable_idempotence=True, max_batch_size=_BATCH_BYTES
        )
        with explaining(self._broker):
            await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def send(
        self,
        key: bytes,
        values: Mapping[str, bytes],
        at: int,
        partition: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Send one record to each topic, and wait until the broker has them.

        They go to the partition of the key, unless another is named.
        """
        if partition is None:
            partition = partition_of(key, self._partitions)
        with explaining(self._broker):
            sent = [
                await self._producer.send(
                    topic, value, key, partition, timestamp_ms=at, headers=list(headers)
                )
                for topic, value in values.items()
            ]
            await asyncio.gather(*sent)

    async def send_many(
        self,
        keys: Sequence[bytes],
        values: Mapping[str, Sequence[bytes]],
        at: int,
        headers: Headers = (),
    ) -> None:
        """Send a record per key to each topic, in order; returns before the broker has them all."""
        for place, rows in self._by_partition(keys):
            for topic, column in values.items():
                records = ((keys[row], column[row], headers) for row in rows)
                for batch in self._batches(records, at):
                    self._under_way.append(await self._hand_over(batch, topic, place))

    async def send_each(
        self,
        keys: Sequence[bytes],
        values: Mapping[str, Sequence[bytes]],
        at: int,
        headers: Sequence[Headers],
    ) -> list[Exception | None]:
        """Send a record per key to each topic, and wait; return for each key what went wrong.

        Partitions fail one by one, so a key fails with its partition.
        """
        failed: list[Exception | None] = [None] * len(keys)
        sent: list[tuple[Sequence[int], asyncio.Future[Any]]] = []
        for place, rows in self._by_partition(keys):
            for topic, column in values.items():
                records = ((keys[row], column[row], headers[row]) for row in rows)
                sent += [
                    (rows, await self._hand_over(batch, topic, place))
                    for batch in self._batches(records, at)
                ]
        for of, future in sent:
            try:
                with explaining(self._broker):
                    await future
            except BrokerError as error:
                for row in of:
                    failed[row] = failed[row] or error
        return failed

    def _by_partition(self, keys: Sequence[bytes]) -> Iterable[tuple[int, list[int]]]:
        rows_of: dict[int, list[int]] = {}
        for row, key in enumerate(keys):
            rows_of.setdefault(partition_of(key, self._partitions), []).append(row)
        return rows_of.items()

    def _batches(
        self,
        records: Iterable[tuple[bytes, bytes, Headers]],
        at: int,
    ) -> Iterator[Any]:
        batch = self._producer.create_batch()
        for key, value, headers in records:
            record = {"timestamp": at, "key": key, "value": value, "headers": list(headers)}
            if batch.append(**record) is None:
                yield batch
                batch = self._producer.create_batch()
                batch.append(**record)
        if batch.record_count():
            yield batch

    async def _hand_over(self, batch: Any, topic: str, partition: int) -> "asyncio.Future[Any]":
        """Give a batch to the client, once few enough are under way; its future is the answer."""
        with explaining(self._broker):
            while len(self._under_way) >= _UNDER_WAY:
                await self._under_way.popleft()
            batch.close()
            return cast(
                "asyncio.Future[Any]",
                await self._producer.send_batch(batch, topic, partition=partition),
            )

    async def flush(self) -> None:
        """Wait until the broker has everything."""
        with explaining(self._broker):
            while self._under_way:
                await self._under_way.popleft()


async def check_topics(settings: AnySettings, topics: Collection[str]) -> None:
    """Raise BrokerError unless the topics exist with the declared number of partitions."""
    async with admin_client(settings.broker) as admin:
        # All topics, because asking for one by name makes some brokers create it.
        listed = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics()}
    for topic in topics:
        if topic not in listed:
            missing, remedy = f"topic {topic} is missing", "create it with: hb topics create"
            if settings.broker.security.named:
                # A broker hides topics from users who may not see them.
                raise NotAllowedError(f"{missing}, or not for this user (hb acls); {remedy}")
            raise BrokerError(f"{missing}; {remedy}")
        if listed[topic] != settings.topics.partitions:
            raise BrokerError(
                f"topic {topic} has {listed[topic]} partitions and the settings say"
                f" {settings.topics.partitions}: a patient's records would not meet; see"
                " topics.partitions"
            )
