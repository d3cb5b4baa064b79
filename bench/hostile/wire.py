"""Encodes records as a Kafka record batch, version 2, without checking anything.

Client libraries refuse some records that brokers accept: header keys that are not text, or no
timestamp.
"""

import struct
from typing import NamedTuple

from aiokafka.record.util import calc_crc32c

_HEAD = struct.Struct(">qiibIhiqqqhii")
_CHECKED_FROM = struct.calcsize(">qiibI")
_LENGTH_FROM = struct.calcsize(">qi")
_MAGIC = 2


class Raw(NamedTuple):
    """A record to be written; header keys are bytes, as on the wire."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def record_batch(*records: Raw) -> bytes:
    """Return a batch of some records, without compression and without a producer's id."""
    first, count = records[0].timestamp, len(records)
    body = b"".join(_record(k, raw, first) for k, raw in enumerate(records))
    size = _HEAD.size + len(body) - _LENGTH_FROM
    newest = max(raw.timestamp for raw in records)
    head = (0, size, -1, _MAGIC, 0, 0, count - 1, first, newest, -1, -1, -1, count)
    batch = bytearray(_HEAD.pack(*head) + body)
    checksum = calc_crc32c(bytes(batch[_CHECKED_FROM:]))
    struct.pack_into(">I", batch, _CHECKED_FROM - 4, checksum)
    return bytes(batch)


def _record(number: int, raw: Raw, first: int) -> bytes:
    body = b"\0" + _varint(raw.timestamp - first) + _varint(number)
    body += _sized(raw.key) + _sized(raw.value) + _varint(len(raw.headers))
    body += b"".join(_sized(name) + _sized(content) for name, content in raw.headers)
    return _varint(len(body)) + body


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a number in zigzag order, seven bits to a byte, the lowest first."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
