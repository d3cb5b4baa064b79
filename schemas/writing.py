"""Records to bytes.

msgspec writes its own records faster than orjson writes dataclasses, or dicts that have to be made
from records first (`hb bench records`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

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


def once(part: object) -> Any:
    """Return a part that many records share, written already."""
    return msgspec.Raw(_encode(part))


def by_name(names: Sequence[str]) -> Callable[..., dict[str, Any]]:
    """Return what makes, of one value per name, something that is written as a dict of them.

    It is not a dict: it can only be written. Making and writing a dict takes far longer.

    >>> shares = by_name(["left", "not right"])
    >>> _encode(shares(0.25, 0.75))
    b'{"left":0.25,"not right":0.75}'
    """
    fields = {f"f{i}": name for i, name in enumerate(names)}
    struct: Any = msgspec.defstruct(
        "ByName", [(field, Any) for field in fields], rename=fields, frozen=True, gc=False
    )
    return cast("Callable[..., dict[str, Any]]", struct)
