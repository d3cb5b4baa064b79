"""The trace that a patient belongs to, as W3C Trace Context names it in the header `traceparent`.

Producers whose programs are traced set the header on their instances; it travels on with the
predictions to the diagnosis, so that the trace of a request includes its answer. Workers take part
in no trace themselves: they hand the value on as it is, or not at all. It comes from strangers, so
that anything but a valid value of version 00 is ignored.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

HEADER = "traceparent"
PATTERN = "^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$"
_VALID = re.compile(PATTERN[1:-1].encode())

Headers = Iterable[tuple[str, bytes | None]]
Carried = list[tuple[str, bytes | None]]


def traceparent(value: str | bytes | None) -> bytes | None:
    """Return a value if it is valid, else None.

    >>> traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    b'00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    >>> traceparent("00-00000000000000000000000000000000-00f067aa0ba902b7-01")
    """
    raw = value.encode(errors="replace") if isinstance(value, str) else value
    return raw if raw is not None and _VALID.fullmatch(raw) else None


def traces(headers: Mapping[int, Headers]) -> dict[int, bytes]:
    """Return the trace of each record that has exactly one valid value, by its index."""
    valid = {}
    for index, pairs in headers.items():
        values = [value for name, value in pairs if name == HEADER]
        trace = traceparent(values[0]) if len(values) == 1 else None
        if trace is not None:
            valid[index] = trace
    return valid


def as_header(trace: bytes) -> Carried:
    """Return the headers that carry a trace on."""
    return [(HEADER, trace)]


def carried(named: Mapping[int, bytes], positions: Sequence[int]) -> dict[int, Carried]:
    """Return the headers of records, by index, that were made of those at `positions`."""
    if not named:
        return {}
    return {k: as_header(named[at]) for k, at in enumerate(positions) if at in named}
