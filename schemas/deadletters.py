"""Dead letters: why a message was refused, in its headers; its own bytes untouched.

>>> letter = refused(RecordError(Reason.EMPTY, "expected a JSON object"),
...                  topic="labels", partition=0, offset=41, at=1_700_000_000_000)
>>> headers(letter)[0]
('hb-reason', b'empty')
>>> from_message(headers(letter), key=None, value=None) == letter
True
"""

from collections.abc import Sequence

import msgspec

from schemas.errors import RecordError
from schemas.explain import first_fault
from schemas.kinds import MAX_DETAIL, VERSION
from schemas.reasons import Reason
from schemas.records import DeadLetter

Headers = Sequence[tuple[str, bytes | None]]

PREFIX = "hb-"
_TEXTS = ("reason", "topic", "detail")
_INTEGERS = ("partition", "offset", "at")


def refused(
    error: RecordError,
    *,
    topic: str,
    partition: int,
    offset: int,
    at: int,
    key: bytes | None = None,
    value: bytes | None = None,
) -> DeadLetter:
    """Return the dead letter of a message that `error` is about."""
    detail = error.detail[:MAX_DETAIL]
    return DeadLetter(error.reason.value, topic, partition, offset, detail, at, key, value)


def headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """Return the headers of a dead letter; its key and value are the message's own."""
    fields = {name: getattr(letter, name) for name in (*_TEXTS, *_INTEGERS)} | {"v": VERSION}
    return [(PREFIX + name, str(field).encode()) for name, field in fields.items()]


def from_message(headers: Headers, key: bytes | None, value: bytes | None) -> DeadLetter:
    """Return the dead letter that a message is; raise RecordError if it is none.

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
    # What is no integer stays text, and is refused as that.
    is_integer = name in (*_INTEGERS, "v") and text.isascii() and text.isdigit() and len(text) <= 16
    return name, int(text) if is_integer else text
