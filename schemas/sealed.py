"""Encrypted features: the form in which they travel, whatever the cipher.

`x` is then one text: `hb1.`, the id of the key, a dot, and the sealed bytes in URL-safe base64. The
rest of the record stays readable, because the id says which partition the record belongs to.
"""

import base64
import binascii
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from schemas.errors import RecordError
from schemas.refusals import Reason

PREFIX = "hb1."
MARK = b'"' + PREFIX.encode()
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

Opener = Callable[[str, "Sealed"], bytes]
"""Returns the JSON of `x`, given the record's id and what it holds; or raises RecordError."""


class Sealed(NamedTuple):
    """What an encrypted `x` holds."""

    key: str
    content: bytes


def write(sealed: Sealed) -> str:
    """Return the text that travels as `x`.

    >>> write(Sealed("k1", b"abc"))
    'hb1.k1.YWJj'
    """
    return f"{PREFIX}{sealed.key}.{base64.urlsafe_b64encode(sealed.content).decode()}"


def read(text: str) -> Sealed:
    """Return what a text holds that begins with the prefix, or raise RecordError."""
    key, _, content = text.removeprefix(PREFIX).partition(".")
    try:
        return Sealed(key, base64.b64decode(content, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        detail = "x: expected the id of a key and base64 behind the prefix of encrypted features"
        raise RecordError(Reason.UNDECRYPTABLE, detail) from None


def opened(value: bytes, opener: Opener) -> bytes:
    """Return a record with its features in the clear; one that is not encrypted as it is.

    What is not a record at all is returned as it is: its reader says what is wrong with it.
    """
    if MARK not in value:
        return value
    try:
        fields = _fields.decode(value)
        x = msgspec.json.decode(fields["x"])
        name = msgspec.json.decode(fields["id"])
    except (msgspec.MsgspecError, KeyError, ValueError):
        return value
    if not isinstance(x, str) or not isinstance(name, str) or not x.startswith(PREFIX):
        return value
    clear = opener(name, read(x))
    return msgspec.json.encode({**fields, "x": msgspec.Raw(clear)})
