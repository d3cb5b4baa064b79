"""Record batches under construction, filled without aiokafka's wrapper around each record.

The wrapper costs as much again as the encoding. This depends on `BatchBuilder._builder` and
`BatchBuilder._relative_offset`, which tests/streams/test_upstream.py pins.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

Record: TypeAlias = tuple[int, bytes | None, bytes | None]
"""Timestamp, key and value."""


class Filled(NamedTuple):
    """What `fill` did: how many records went in, and the first that did not fit."""

    appended: int
    left: Record | None


def fill(
    builder: Any, records: Iterable[Record], headers: Sequence[tuple[str, bytes | None]]
) -> Filled:
    """Append records until the batch is full; an empty batch takes one of any size."""
    append, first = builder._builder.append, builder._relative_offset
    count, left = first, None
    for record in records:
        timestamp, key, value = record
        if append(count, timestamp, key, value, headers) is None:
            left = record
            break
        count += 1
    builder._relative_offset = count
    return Filled(count - first, left)


def size_of(builder: Any) -> int:
    """Return the bytes of a batch so far."""
    return int(builder._builder.size())
