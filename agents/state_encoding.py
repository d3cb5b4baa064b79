"""State as bytes: named arrays, ledger entries and rows, for the tables of a task."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from learners.arrays.types import State
from learners.join import Codec
from learners.payloads import keep_payload, load_payload

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

ENTRIES = Codec(pack=_encode, unpack=_decode, keep=keep_payload, load=load_payload)
"""Ledger entries as MessagePack: half the memory, and what is written down is what is kept."""


def pack_state(state: State) -> bytes:
    """Return named arrays as bytes."""
    return _encode({name: _plain(array) for name, array in state.items()})


def _plain(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def unpack_state(data: bytes) -> State:
    """Return the named arrays again, bit for bit."""
    return {
        name: np.frombuffer(raw, np.dtype(kind)).reshape(shape).copy()
        for name, (kind, shape, raw) in _decode(data).items()
    }


def pack(value: Any) -> bytes:
    """Return plain data as bytes."""
    return _encode(value)


def unpack(data: bytes) -> Any:
    """Return the plain data again; tuples come back as lists."""
    return _decode(data)
