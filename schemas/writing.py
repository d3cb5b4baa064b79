"""Records to bytes.

msgspec writes its own records faster than orjson writes dataclasses, or dicts that have to be made
from records first (`hb bench records`).
"""

from collections.abc import Iterable

import msgspec

from schemas.records import Record

_encode = msgspec.json.Encoder().encode


def encode(record: Record) -> bytes:
    """Return a record as it travels. Trusts the record: a reader may refuse what it holds.

    >>> from schemas.records import Label
    >>> encode(Label("a17", "malignant", 1_700_000_000_000))
    b'{"v":1,"id":"a17","label":"malignant","at":1700000000000}'
    """
    return _encode(record)


def encode_all(records: Iterable[Record]) -> list[bytes]:
    """Return many records as they travel."""
    return list(map(_encode, records))
