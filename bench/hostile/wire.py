"""One record as the bytes of Kafka's record batch, version 2, with nothing checked on the way.

Client libraries refuse some of what brokers take: header keys that are not text, or no timestamp.
"""

import struct

from aiokafka.record.util import calc_crc32c

_HEAD = struct.Struct(">qiibIhiqqqhii")
_CHECKED_FROM = struct.calcsize(">qiibI")
_LENGTH_FROM = struct.calcsize(">qi")
_MAGIC = 2


def record_batch(
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    """Return a batch of one record, without compression and without a producer's id."""
    body = b"\0" + _varint(0) + _varint(0) + _sized(key) + _sized(value) + _varint(len(headers))
    body += b"".join(_sized(name) + _sized(content) for name, content in headers)
    record = _varint(len(body)) + body
    size = _HEAD.size + len(record) - _LENGTH_FROM
    head = (0, size, -1, _MAGIC, 0, 0, 0, timestamp, timestamp, -1, -1, -1, 1)
    batch = bytearray(_HEAD.pack(*head) + record)
    checksum = calc_crc32c(bytes(batch[_CHECKED_FROM:]))
    struct.pack_into(">I", batch, _CHECKED_FROM - 4, checksum)
    return bytes(batch)


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
