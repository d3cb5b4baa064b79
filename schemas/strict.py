"""JSON read to the letter: UTF-8, finite numbers, every key of an object once.

The fast decoder keeps the last of two equal keys, skips what it does not know without looking at
its bytes, and does not miss `v`. So the readers prove for every value that this did not happen:
cheaply where they can (`are_lean`, `is_lean`), by a second parser where they cannot (`is_plain`),
and by the slow parser here where something is wrong or looks so (`parse`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from operator import methodcaller
from typing import Any

import orjson

from schemas.errors import RecordError
from schemas.kinds import VERSION
from schemas.reasons import Reason

_HEADS = (b'{"v":%d,' % VERSION, b'{"v": %d,' % VERSION)
_headed = methodcaller("startswith", _HEADS)


def are_lean(values: Sequence[bytes], keys: int) -> bool:
    """Prove for decoded values what `is_lean` proves for one; `keys` is their number all together.

    No value can have fewer colons than the keys that the decoder demanded, so if the sum is right,
    each one is.
    """
    # The decoder does not demand `v`, and the count is a proof only if it is there.
    headed = all(map(_headed, values))
    return headed and b"".join(values).count(b":") == keys


def is_lean(value: bytes, keys: int, name: str) -> bool:
    """Prove that a decoded value holds `keys` keys, each once. False means only: not proven.

    `keys` is how many keys the decoder demanded, `v` included, and `name` is the decoded id. Each
    key has one colon, so a value with that many colons has no room for another key. Colons within
    the id are told apart as long as nothing in the value is escaped.

    >>> is_lean(b'{"v":1,"id":"a"}', 2, "a"), is_lean(b'{"v":1,"id":"a","id":"a"}', 2, "a")
    (True, False)
    """
    if not value.startswith(_HEADS):
        return False
    colons = value.count(b":")
    return colons == keys or (colons == keys + name.count(":") and b"\\" not in value)


def is_plain(value: bytes) -> bool:
    """Prove that a value is a JSON object with `v`, each key once. False means only: not proven.

    Written again, an object that named a key twice has lost one colon at least; nothing can make up
    for it, since only an escape can hide a colon from the count.
    """
    if b"\\" in value:
        return False
    try:
        document = orjson.loads(value)
        again = orjson.dumps(document)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return False
    return isinstance(document, dict) and "v" in document and again.count(b":") == value.count(b":")


@dataclass(slots=True)
class Document:
    """A parsed value. `finite` is False if any number in it is NaN or infinite."""

    root: object = None
    finite: bool = True


def parse(value: bytes) -> Document:
    """Parse a value; raise RecordError if it is not JSON or names a key twice.

    The one leniency of the standard parser that is left, half a surrogate pair, the decoder of the
    readers refuses in any field.
    """
    document = Document()
    try:
        document.root = _decoder(document).decode(value.decode())
    except UnicodeDecodeError:
        raise RecordError(Reason.NOT_UTF8, "expected JSON in UTF-8") from None
    except RecursionError:
        raise RecordError(Reason.MALFORMED, "expected JSON that is not nested so deeply") from None
    except json.JSONDecodeError:
        raise RecordError(Reason.MALFORMED, "expected one complete JSON object") from None
    return document


def _decoder(document: Document) -> json.JSONDecoder:
    def number(text: str) -> float:
        parsed = float(text)
        document.finite &= isfinite(parsed)
        return parsed

    def integer(text: str) -> float:
        parsed = number(text)
        return int(text) if isfinite(parsed) else parsed

    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_float=number,
        parse_int=integer,
        parse_constant=number,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RecordError(Reason.DUPLICATE_KEY, "expected every key of an object once")
    return made
