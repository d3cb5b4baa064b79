"""Good inputs made odd: bytes flipped, cut, doubled, spliced, and values that broke others."""

import random
import re
from typing import Any

import msgspec

_ODD = (
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"%00", b"../", b"\\u0000",
    b"null", b"true", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b"1.5",
    b"9223372036854775808", b"-9223372036854775809", b'""', b"[]", b"{}", b"[" * 300,
    b'{"a":' * 300,
    b'"' + b"a" * 5000 + b'"', "é\u202e😀".encode(), b"__class__", b"os:system", b"builtins:eval",
    b"\x93", b"\xdf\xff\xff\xff\xff", b"\xc1", b"O", b"<f8", b"|O8", b"V2147483647",
)  # fmt: skip
_TOKEN = re.compile(rb'"[^"\\]*"|-?\d+(?:\.\d+)?|\[[^\[\]]*\]|\{[^{}]*\}')
"""Texts, numbers, lists and objects of JSON and TOML."""
_VALUES = (
    b"null", b"true", b"[]", b"{}", b'[""]', b'{"":""}', b'""', b'"x"', b"0", b"-1", b"1.5", b"nan",
    b"1e999", b"9223372036854775808", b"[[[[]]]]", b'"\\ud800"', b'"\\u0000"', b"1979-05-27",
)  # fmt: skip
_PLAIN: tuple[Any, ...] = (
    None, True, [], {}, "", "x", b"", b"\xff", 0, -1, 1.5, float("nan"), 2**63, -(2**63), [[]],
    {0: 0},
)  # fmt: skip
SEPARATOR = b"\x1e"
"""Between the parts of an input that has several."""
_MOST = 1 << 20
_WELL_FORMED = 0.5
"""How often an input stays well-formed and has other values."""
_HERE = 0.2


def mutated(draw: random.Random, corpus: list[bytes]) -> bytes:
    """Return one of the good inputs with one to six changes."""
    data = bytearray(draw.choice(corpus))
    if draw.random() < _WELL_FORMED:
        return _other_values(draw, bytes(data))
    for _ in range(draw.randint(1, 6)):
        start, end = _span(draw, len(data))
        match draw.randrange(6):
            case 0 if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
            case 1:
                del data[start:end]
            case 2:
                data[start:end] = draw.choice(_ODD)
            case 3:
                data[start:start] = data[start:end] * draw.randint(1, 4)
            case 4:
                donor = draw.choice(corpus)
                data[start:end] = donor[slice(*_span(draw, len(donor)))]
            case _:
                data[start:start] = draw.randbytes(draw.randint(1, 8))
    return bytes(data[:_MOST])


def _other_values(draw: random.Random, data: bytes) -> bytes:
    """Return the same document with other values in one to three places."""
    for _ in range(draw.randint(1, 3)):
        head, separator, body = data.rpartition(SEPARATOR)
        try:
            packed = msgspec.msgpack.encode(_replaced(draw, msgspec.msgpack.decode(body)))
            data = head + separator + packed
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
            if tokens := list(_TOKEN.finditer(data)):
                start, end = draw.choice(tokens).span()
                data = data[:start] + draw.choice(_VALUES) + data[end:]
    return data


def _replaced(draw: random.Random, value: Any) -> Any:
    """Return plain data with one part of it exchanged."""
    if not isinstance(value, list | dict) or not value or draw.random() < _HERE:
        return draw.choice(_PLAIN)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        return [_replaced(draw, part) if i == place else part for i, part in enumerate(value)]
    chosen = draw.choice(list(value))
    return {key: _replaced(draw, part) if key is chosen else part for key, part in value.items()}


def _span(draw: random.Random, length: int) -> tuple[int, int]:
    start = draw.randint(0, length)
    return start, min(length, start + draw.choice((1, 2, 4, 8, 64)))
