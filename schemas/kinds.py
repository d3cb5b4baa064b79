"""The kinds of values that fields hold, each with its limits, in one place.

msgspec checks the limits while it parses, and writes them into the JSON Schema. It could check the
characters of ids and cubes only by regular expression, which is slow, so the readers check them;
`extra_json_schema` states the rule for other languages.
"""

import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta

VERSION = 1
"""The version that these records are written in, and the only one that is read."""

MAX_BYTES = 256 * 1024
"""Longest value that readers parse: thousands of features fit."""

MAX_DEPTH = 500
"""Deepest nesting that readers parse, well below the limit of every parser on every Python."""

MAX_TEXT = 200
MAX_CUBE = 2**63 - 1
MAX_INTEGER = 2**53 - 1
"""The largest integer that survives readers which keep every JSON number as a double."""
MAX_MILLIS = 253_402_300_799_999
"""The end of the year 9999. Times in micro- or nanoseconds lie beyond it, so they are refused."""

CONTROL_CHARACTERS = r"[\u0000-\u001f\u007f-\u009f]"

Id: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_TEXT,
        extra={"kind": "id"},
        extra_json_schema={"not": {"pattern": CONTROL_CHARACTERS}},
    ),
]
"""An opaque token: not empty, at most 200 characters, no control characters."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
"""The name of a label, learner, rule, feature or category."""

Cube: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=len(str(MAX_CUBE)),
        extra_json_schema={"not": {"pattern": "[^0-9]"}},
    ),
]
"""A cube's id, 0 … 2^63-1, as decimal text: many JSON readers round integers beyond 2^53."""

Millis: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_MILLIS)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Positive: TypeAlias = Annotated[float, Meta(ge=0)]
"""A finite number, 0 or greater."""

Value: TypeAlias = float | Name | None
"""What a feature holds: a number, the name of a category, or null if it is not known."""

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""What files write where a value is missing; in small letters, without blanks around it."""


def is_missing(value: object) -> bool:
    """Say whether a value in a record stands for one that is not known.

    >>> [is_missing(value) for value in (None, " NA ", "?", "left", 0.0)]
    [True, True, True, False, False]
    """
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING_WORDS)


MAX_DETAIL = 1000
Text: TypeAlias = Annotated[str, Meta(max_length=MAX_DETAIL)]


def has_control_characters(text: str) -> bool:
    """Say whether a text holds a control character (Unicode category Cc).

    >>> has_control_characters("a-17"), has_control_characters("a\\n17")
    (False, True)
    """
    # Every control character is unprintable, so printable text, the usual case, needs no search.
    return not text.isprintable() and re.search(CONTROL_CHARACTERS, text) is not None


def are_cubes(texts: Sequence[str]) -> bool:
    """Say whether texts of 1 to 19 characters are all ids of cubes.

    >>> are_cubes(["0", "9223372036854775807"]), are_cubes(["9223372036854775808"])
    (True, False)
    """
    joined = "".join(texts)
    if joined and not (joined.isascii() and joined.isdigit()):
        return False
    # Texts of equal length compare as their numbers do, and shorter ones are below the limit.
    limit = str(MAX_CUBE)
    return all(text <= limit for text in texts if len(text) == len(limit))
