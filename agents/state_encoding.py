"""State as bytes: named arrays, ledger entries and rows, for the tables of a task."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from learners.arrays.types import State
from learners.join import Codec
from learners.payloads import keep_context, keep_payload, load_payload
from schemas.deadletters import digest
from streams.engine.state.table import reading

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_KIND = re.compile(r"[<>|][biufSU]\d{1,4}")
"""Arrays of numbers and texts; numpy reads a whole language of types, and not only to refuse it."""


def _weigh(payload: Sequence[Any]) -> int:
    """Return the length of the record that a label or a context brings along, its last field."""
    return len(payload[-1]) if isinstance(payload[-1], bytes) else 0


def _shrink(payload: Sequence[Any]) -> Sequence[Any]:
    """Keep only a digest of that record."""
    *fields, value = payload
    return (*fields, digest(value) if isinstance(value, bytes) else value)


ENTRIES = Codec(
    pack=_encode,
    unpack=_decode,
    keep=keep_payload,
    load=load_payload,
    keep_context=keep_context,
    weigh=_weigh,
    shrink=_shrink,
    size=len,
)
"""Ledger entries as MessagePack: half the memory, and what is written down is what is kept."""


def pack_state(state: State) -> bytes:
    """Return named arrays as bytes."""
    return _encode({name: _plain(array) for name, array in state.items()})


def _plain(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def unpack_state(data: bytes) -> State:
    """Return the named arrays again, bit for bit."""
    with reading("a stored model"):
        return {
            name: np.frombuffer(raw, _dtype(kind)).reshape(shape).copy()
            for name, (kind, shape, raw) in _decode(data).items()
        }


def _dtype(kind: str) -> np.dtype[Any]:
    if not _KIND.fullmatch(kind):
        raise ValueError(kind)
    return np.dtype(kind)


def pack(value: Any) -> bytes:
    """Return plain data as bytes."""
    return _encode(value)


def unpack(data: bytes) -> Any:
    """Return the plain data again; tuples come back as lists."""
    return _decode(data)
