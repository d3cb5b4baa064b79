"""Detects when RocksDB has lost writes from the middle of its history without noticing.

RocksDB collects writes in a log file and in memory, and later in table files, which its manifest
lists. A manifest that lost its end, or a log file that is missing while a later one exists, leaves
a folder that opens without complaint: the newest writes are there, older ones are not.

So every log file gets its own mark in every column family: a row that is never overwritten. The
folder's metadata lists the marks that must exist. Writes that are lost together were in the same
log file, so their mark is lost with them, and the next opening notices it.

An opening writes a new manifest: first everything the old one listed, then what it recovers from
the log files. So what was written before the last opening but one is at the head of the manifest,
which cannot be lost without an error, and its marks can be deleted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_MARK = b"\x00generation/"
"""Prefix of marks' keys; no table has such keys: cells are 8 bytes, and ids are printable."""


class Span(NamedTuple):
    """The marks that must exist: from `first` to `last`; `opened` is the last opening's."""

    first: int
    last: int
    opened: int


def is_mark(key: bytes) -> bool:
    """Tell whether a key of a column family is a mark."""
    return key.startswith(_MARK)


def newest_log(folder: Path) -> str:
    """Return the name of the log file that RocksDB writes now."""
    return max((file.name for file in folder.glob("*.log")), default="")


def mark(batch: Any, handles: Mapping[str, Any], number: int) -> None:
    """Put the mark of a generation into every column family."""
    for handle in handles.values():
        batch.put(_key(number), b"", handle)


def unmark(batch: Any, handles: Mapping[str, Any], first: int, end: int) -> None:
    """Delete the marks from `first` up to, but not including, `end`."""
    for handle in handles.values():
        for number in range(first, end):
            batch.delete(_key(number), handle)


def complete(family: Any, span: Span) -> bool:
    """Tell whether a column family has all the marks it must have."""
    marks = [_key(number) for number in range(span.first, span.last + 1)]
    return all(value is not None for value in family.get(marks)) if marks else True


def _key(number: int) -> bytes:
    return _MARK + b"%012d" % number
