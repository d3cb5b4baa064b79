"""Reads fetched record batches whatever they contain: aiokafka's own reader fails at some.

Brokers check the frame of a batch and not its contents. A header key that is not UTF-8 makes
aiokafka's compiled reader raise, and a kilobyte that unpacks to gigabytes kills the process; either
would happen again at every attempt, and nothing after it would ever be read. So:

- A batch is read by aiokafka's compiled reader; if that fails over text, by the one below, which
  writes such header keys with escapes.
- A compressed batch is unpacked here, up to `MOST_UNPACKED` bytes and `MOST_RECORDS` records. In
  place of a larger one there is one record, at its last offset, with an `Unread` value, which
  readers refuse as too large.

`install` replaces aiokafka's `MemoryRecords` with this, for every consumer of the process. It
depends on aiokafka 0.14: on the name `fetcher.MemoryRecords` and on what `PartitionRecords` calls
on a batch; tests/streams/test_upstream.py pins both.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import cramjam
from aiokafka.codec import snappy_decode
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords as CompiledRecords

MOST_UNPACKED = 64 << 20
MOST_RECORDS = 250_000
UNREAD_BYTES = 1 << 20
"""The length that an unread value claims: more than any reader accepts."""

_HEAD = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT, _LENGTH_END, _MAGIC_AT, _ATTRIBUTES_AT = 8, 12, 16, 21
_CODEC, _APPEND_TIME = 0x07, 0x08
_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_FORMAT = 2
_CONTINUED, _LONGEST_NUMBER = 0x80, 70
"""Of numbers of variable length: the bit that says there is more, and the most bits there are."""


class Unread(bytes):
    """Stands for a value that was not unpacked; `size` and `sha256` are those of its batch."""

    size: int
    sha256: str


class ReadRecord(NamedTuple):
    """A record as aiokafka's compiled reader returns it."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    checksum: None = None


def install() -> None:
    """Make all consumers of this process read with `ReadableRecords`."""
    fetcher.MemoryRecords = ReadableRecords


class ReadableRecords:
    """The record batches of one fetched partition."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._compiled = CompiledRecords(data)

    def size_in_bytes(self) -> int:
        """Return how much was fetched."""
        return len(self._data)

    def has_next(self) -> bool:
        """Tell whether there is another whole batch."""
        return bool(self._compiled.has_next())

    def next_batch(self) -> Any:
        """Return the next batch, None after the last one."""
        batch = self._compiled.next_batch()
        if batch is None:
            return None
        start = self._at
        (length,) = struct.unpack_from(">i", self._data, start + _LENGTH_AT)
        self._at = start + _LENGTH_END + length
        if self._data[start + _MAGIC_AT] < _FORMAT:
            return batch
        return ReadableBatch(batch, memoryview(self._data)[start : self._at])


class ReadableBatch:
    """One batch: its frame as in aiokafka's own class, with records that can always be read."""

    def __init__(self, compiled: Any, raw: memoryview) -> None:
        self._compiled, self._raw = compiled, raw
        self._records: Iterator[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.records())

    def __next__(self) -> Any:
        if self._records is None:
            self._records = iter(self)
        return next(self._records)

    def records(self) -> list[Any]:
        """Return all records of the batch."""
        (attributes,) = struct.unpack_from(">h", self._raw, _ATTRIBUTES_AT)
        raw, compiled = self._raw, self._compiled
        if attributes & _CODEC:
            few = _HEAD.unpack_from(raw)[12] <= MOST_RECORDS
            unpacked = _unpacked(attributes & _CODEC, raw[_HEAD.size :]) if few else None
            if unpacked is None:
                return [_unread(raw)]
            head = bytearray(raw[: _HEAD.size])
            struct.pack_into(">h", head, _ATTRIBUTES_AT, attributes & ~_CODEC)
            struct.pack_into(">i", head, _LENGTH_AT, _HEAD.size - _LENGTH_END + len(unpacked))
            raw = memoryview(bytes(head) + unpacked)
            compiled = CompiledRecords(bytes(raw)).next_batch()
        try:
            return list(compiled)
        except UnicodeDecodeError:
            return _read(raw)


def _unpacked(codec: int, data: memoryview) -> bytes | None:
    """Return the uncompressed bytes of a batch, None if they are too large."""
    try:
        if codec == _GZIP:
            return _gunzipped(data)
        if codec == _SNAPPY:  # never unpacks to more than some twenty times its size
            return bytes(snappy_decode(bytes(data)))
        room = _room()
        unpack = (cramjam.lz4 if codec == _LZ4 else cramjam.zstd).decompress_into
        return bytes(memoryview(room)[: unpack(bytes(data), room)])
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        if "whole buffer" in str(error):
            return None
        raise CorruptRecordException("a compressed record batch cannot be unpacked") from error


@cache
def _room() -> bytearray:
    """Return the buffer for unpacking; the system allocates its memory only as it is used."""
    return bytearray(MOST_UNPACKED)


def _gunzipped(data: memoryview) -> bytes | None:
    parts, left, size = [], bytes(data), 0
    while left:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        parts.append(stream.decompress(left, MOST_UNPACKED - size + 1))
        size += len(parts[-1])
        if size > MOST_UNPACKED:
            return None
        left = stream.unused_data
    return b"".join(parts)


def _unread(raw: memoryview) -> ReadRecord:
    """Return the stand-in for all records of a batch that is too large to unpack.

    It is at the last offset, because a reader that has read part of the batch skips earlier ones.
    """
    head = _HEAD.unpack_from(raw)
    base, last, newest = head[0], head[6], head[8]
    value = Unread(UNREAD_BYTES)
    value.size, value.sha256 = len(raw), hashlib.sha256(raw).hexdigest()
    return ReadRecord(base + last, newest, int(bool(head[5] & _APPEND_TIME)), None, value, [])


def _read(raw: memoryview) -> list[Any]:
    """Read the records of a batch that is not compressed, whatever its header keys are."""
    head, data = _HEAD.unpack_from(raw), bytes(raw)
    base, attributes, first, newest, count = head[0], head[5], head[7], head[8], head[12]
    by_broker, at = bool(attributes & _APPEND_TIME), _HEAD.size
    records = []
    for _ in range(count):
        _, at = _varint(data, at)
        later, at = _varint(data, at + 1)  # after the attributes, of which none are defined
        number, at = _varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        headers, at = _headers(data, at)
        stamp = newest if by_broker else first + later
        records.append(ReadRecord(base + number, stamp, int(by_broker), key, value, headers))
    return records


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends; aiokafka's own reads on behind the end of the data."""
    number = shift = 0
    while at < len(data) and shift < _LONGEST_NUMBER:
        byte = data[at]
        number, at, shift = number | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < _CONTINUED:
            return number >> 1 ^ -(number & 1), at
    raise CorruptRecordException("a record ends before its time")


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if at + size > len(data):
        raise CorruptRecordException("a record is longer than its batch")
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _headers(data: bytes, at: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, at = _varint(data, at)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _bytes(data, at)
        content, at = _bytes(data, at)
        headers.append(((name or b"").decode(errors="backslashreplace"), content))
    return headers, at
