"""Records to bytes. Reading is in `schemas.readers`, `schemas.labels` and `schemas.rows`.

msgspec writes its own records faster than orjson writes dataclasses, or dicts that have to be made
from records first (`hb bench records`).
"""

from collections.abc import Iterable

import msgspec

from schemas.errors import RecordError
from schemas.readers import Reader
from schemas.reasons import Reason
from schemas.records import Record

_encode = msgspec.json.Encoder().encode


def encode(record: Record) -> bytes:
    """Return a record as it travels. Trusts the record: for what the program itself has made."""
    return _encode(record)


def encode_all(records: Iterable[Record]) -> list[bytes]:
    """Return many records as they travel."""
    return list(map(_encode, records))


def checked(record: Record) -> bytes:
    """Return a record as it travels, or raise RecordError if a reader would refuse it.

    For records made from what users hand in. A number that is not finite is refused here; `encode`
    would write null in its place.

    >>> from schemas.records import Label
    >>> checked(Label("a17", "malignant", 1_700_000_000_000))
    b'{"v":1,"id":"a17","label":"malignant","at":1700000000000}'
    >>> checked(Label("", "malignant", 1_700_000_000_000))
    Traceback (most recent call last):
    schemas.errors.RecordError: bad_id: id: expected text of 1 to 200 characters
    """
    try:
        value = _encode(record)
    except UnicodeEncodeError:
        raise RecordError(Reason.NOT_UTF8, "expected text that UTF-8 can hold") from None
    Reader(type(record)).one(value)
    return value
