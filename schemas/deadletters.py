"""Dead letters: why a message was refused, in its headers; its own bytes untouched.

A message that is too large for a dead letter leaves the digest of its value instead: the size and
SHA-256 tell which it was, and topic, partition and offset where it may still be found.

>>> letter = refused(RecordError(Reason.EMPTY, "expected a JSON object"),
...                  topic="labels", partition=0, offset=41, at=1_700_000_000_000)
>>> headers(letter)[0]
('hb-reason', b'empty')
>>> from_message(headers(letter), key=None, value=None) == letter
True
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from schemas.errors import RecordError
from schemas.explain import first_fault
from schemas.kinds import MAX_DETAIL, VERSION
from schemas.records import DeadLetter
from schemas.refusals import Reason

Headers = Sequence[tuple[str, bytes | None]]

PREFIX = "hb-"
_TEXTS = ("reason", "topic", "detail")
_INTEGERS = ("partition", "offset", "at")
_DIGEST = ("size", "sha256")

LARGEST = 512 << 10
"""Bytes of a message that its dead letter keeps; of a larger one the value becomes a digest."""
LONGEST_KEY = 16 << 10
MOST_HEADERS = 64 << 10
"""What is left of the key and of the headers of a message that is too large: all or nothing."""


class Digest(NamedTuple):
    """Takes the place of a value that is too large to be kept."""

    size: int
    sha256: str


def digest(value: bytes) -> Digest:
    """Return what stands for a value; one that was never unpacked brings its own digest.

    >>> digest(b"abc").size, digest(b"abc").sha256[:8]
    (3, 'ba7816bf')
    """
    size, known = getattr(value, "size", len(value)), getattr(value, "sha256", None)
    return Digest(size, known or hashlib.sha256(value).hexdigest())


KEPT = 1 << 10


def kept(value: bytes | None) -> bytes | Digest | None:
    """Return what is kept of a value that may wait for days before it is used or refused.

    >>> kept(b"{}"), kept(b" " * 2_000).size
    (b'{}', 2000)
    """
    return value if value is None or len(value) <= KEPT else digest(value)


class Message(NamedTuple):
    """A message as a dead letter carries it on."""

    key: bytes | None
    value: bytes | Digest | None
    headers: Headers = ()


def fitted(message: Message) -> Message:
    """Return a message that fits into a dead letter.

    >>> fitted(Message(b"a17", b"{", ())).value
    b'{'
    >>> fitted(Message(b"a17", b"x" * LARGEST, ())).value.size
    524288
    """
    key, value, extra = message
    own = sum(len(name) + len(content or b"") for name, content in extra)
    size = len(key or b"") + own + (len(value) if isinstance(value, bytes) else 0)
    if size < LARGEST:
        return message
    return Message(
        None if key is not None and len(key) > LONGEST_KEY else key,
        digest(value) if isinstance(value, bytes) and len(value) > LONGEST_KEY else value,
        () if own > MOST_HEADERS else extra,
    )


def refused(
    error: RecordError,
    *,
    topic: str,
    partition: int,
    offset: int,
    at: int,
    key: bytes | None = None,
    value: bytes | Digest | None = None,
) -> DeadLetter:
    """Return the dead letter of a message that `error` is about."""
    detail = error.detail[:MAX_DETAIL]
    bare = DeadLetter(error.reason.value, topic, partition, offset, detail, at, key)
    if isinstance(value, Digest):
        return msgspec.structs.replace(bare, size=value.size, sha256=value.sha256)
    return msgspec.structs.replace(bare, value=value)


def headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """Return the headers of a dead letter; its key and value are the message's own."""
    fields = {name: getattr(letter, name) for name in (*_TEXTS, *_INTEGERS)} | {"v": VERSION}
    if letter.sha256 is not None:
        fields |= {name: getattr(letter, name) for name in _DIGEST}
    return [(PREFIX + name, str(field).encode()) for name, field in fields.items()]


def from_message(headers: Headers, key: bytes | None, value: bytes | None) -> DeadLetter:
    """Return a message as the dead letter that it is; raise RecordError if it is not one.

    A reason that this version does not know is kept as it is, and so are the message's bytes.
    """
    document = {name: text for name, text in map(_field, headers) if name}
    fault = first_fault(document, DeadLetter)
    if fault is not None:
        raise fault.error()
    letter = msgspec.convert(document, DeadLetter)
    return msgspec.structs.replace(letter, key=key, value=value)


def _field(header: tuple[str, bytes | None]) -> tuple[str, str | int]:
    name = header[0].removeprefix(PREFIX) if header[0].startswith(PREFIX) else ""
    try:
        text = (header[1] or b"").decode()
    except UnicodeDecodeError:
        raise RecordError(Reason.NOT_UTF8, "headers: expected text in UTF-8") from None
    # What is not an integer stays text, and is refused as such.
    is_integer = (
        name in (*_INTEGERS, "size", "v") and text.isascii() and text.isdigit() and len(text) <= 16
    )
    return name, int(text) if is_integer else text
