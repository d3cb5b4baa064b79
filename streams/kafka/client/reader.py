"""A consumer outside any group that reads committed records from any position."""

import copy
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import READ_UNCOMMITTED

from settings.errors import BrokerError
from streams.kafka.batch import Batch
from streams.kafka.client.fetched import take_batches, wait_for_fetch

_CHUNK = 1 << 20


class TopicMissingError(BrokerError):
    """A topic, or a partition of it, does not exist."""


def committed_reader(
    client: Mapping[str, Any],
    name: str,
    *,
    fetch_bytes: int,
    request_timeout: float,
    wait_ms: int = 20,
) -> Any:
    """Return a consumer that reads committed records; `client` holds the connection arguments."""
    return AIOKafkaConsumer(
        **client,
        client_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        # A position that the log no longer has must raise, not silently move.
        auto_offset_reset="none",
        max_partition_fetch_bytes=fetch_bytes,
        # aiokafka has only one fetch per broker in flight; a seek waits until it is answered.
        fetch_max_wait_ms=wait_ms,
        request_timeout_ms=int(request_timeout * 1000),
    )


async def partitions_of(consumer: Any, topic: str) -> list[int]:
    """Return the partitions of a topic; raise if it does not exist."""
    numbers = await _known(consumer, topic, 0)
    if not numbers:
        raise TopicMissingError(f"topic {topic} does not exist; create it (hb topics create)")
    return sorted(numbers)


async def bounds(consumer: Any, places: list[Any]) -> tuple[dict[Any, int], dict[Any, int]]:
    """Return where partitions begin and end; raise if one does not exist."""
    await check_exist(consumer, places)
    return await consumer.beginning_offsets(places), await consumer.end_offsets(places)


async def high_watermarks(consumer: Any, places: Collection[Any]) -> dict[Any, int]:
    """Return where partitions end, including transactions that are not decided yet.

    Brokers tell a reader of committed records where committed records end, so a copy of its fetcher
    asks as a reader of uncommitted records.
    """
    fetcher = copy.copy(consumer._fetcher)
    fetcher._isolation_level = READ_UNCOMMITTED
    timeout: int = consumer._request_timeout_ms
    ends: dict[Any, int] = await fetcher.end_offsets(places, timeout)
    return ends


async def get_to_know(consumer: Any, topics: Collection[str]) -> None:
    """Learn of topics that are not read, all at once.

    Asked where a topic ends that it does not know, aiokafka learns of that one and tries again a
    tenth of a second later, and so on with the next.
    """
    client = consumer._client
    await client.set_topics(client._topics | set(topics))


async def check_exist(consumer: Any, places: list[Any]) -> None:
    """Raise an error that names a missing topic; aiokafka would silently wait for it."""
    for place in places:
        numbers = await _known(consumer, place.topic, place.partition)
        if not numbers:
            raise TopicMissingError(
                f"topic {place.topic} does not exist; create it (hb topics create)"
            )
        if place.partition not in numbers:
            raise TopicMissingError(f"topic {place.topic} has no partition {place.partition}")


async def _known(consumer: Any, topic: str, partition: int) -> set[int]:
    """Return the partitions that the client knows, after asking again if one is missing."""
    client = consumer._client
    await client.add_topic(topic)
    numbers: set[int] = client.cluster.partitions_for_topic(topic) or set()
    if partition not in numbers:
        await client.force_metadata_update()
        numbers = client.cluster.partitions_for_topic(topic) or set()
    return numbers


async def read_to(
    consumer: Any, place: Any, first: int, end: int, use: Callable[[Batch], Awaitable[None]]
) -> None:
    """Pass the committed records of one partition from `first` to `end` to `use`."""
    consumer.assign([place])
    consumer.seek(place, first)
    position = first
    while position < end:
        batches = take_batches(consumer, [place], _CHUNK)
        for batch in batches:
            position = batch.next
            await use(batch)
        if not batches:
            await wait_for_fetch(consumer, 1.0)
