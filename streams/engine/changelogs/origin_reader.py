"""The origin of the state on the broker, read before any task is opened.

Opening a task fences its current owner. A worker that would refuse the state anyway must not get
that far, so it looks at the changelogs first.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from aiokafka import TopicPartition

from streams.engine.cancellation import shielded
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.changelogs.origin import Origin
from streams.engine.config import EngineConfig
from streams.kafka.batch import Batch
from streams.kafka.client.reader import bounds, read_to

_FIRST_STEP = 20
_GROWTH = 8


async def origins(
    config: EngineConfig, changelogs: Mapping[str, int]
) -> AsyncIterator[tuple[Any, Origin]]:
    """Yield the origin in each partition that has one; `changelogs` gives their partitions."""
    consumer = config.reader(f"{config.app}.origins")
    places = [TopicPartition(t, number) for t, size in changelogs.items() for number in range(size)]
    try:
        async with asyncio.timeout(2 * config.request_timeout):
            await shielded(consumer.start())
            starts, ends = await shielded(bounds(consumer, places))
        for place in places:
            origin = await _last(consumer, place, starts[place], ends[place])
            if origin is not None:
                yield place, origin
    finally:
        await shielded(consumer.stop())


async def _last(consumer: Any, place: Any, start: int, end: int) -> Origin | None:
    """Return the origin in the last meta record that holds one; every transaction ends with one."""
    origin: Origin | None = None

    async def take(batch: Batch) -> None:
        nonlocal origin
        for key, value in zip(batch.keys, batch.values, strict=True):
            if key == META_KEY:
                origin = _parsed(value) or origin

    step, first = _FIRST_STEP, end
    while origin is None and first > start:
        first, step = max(start, end - step), step * _GROWTH
        await read_to(consumer, place, first, end, take)
    return origin


def _parsed(value: bytes | None) -> Origin | None:
    """Return the origin in a meta record; None if it is not a meta record.

    >>> _parsed(b'{"origin": {"owner": "wdbc"}}').owner, _parsed(b"[]"), _parsed(b"{")
    ('wdbc', None, None)
    """
    try:
        return Origin.parse(msgspec.json.decode(value or b"", type=_Meta).origin)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # any client may write to a topic


class _Meta(msgspec.Struct):
    origin: dict[str, str | dict[str, str]] = {}
