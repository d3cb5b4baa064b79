"""Arrays as bytes: what was not written by a worker is refused."""

import msgspec
import numpy as np
import pytest

from agents.state_encoding import pack_state, unpack_state
from streams.engine.state.table import StateError

STATE = {"counts": np.arange(6).reshape(2, 3), "names": np.array(["a", "bc"]), "n": np.array(0.5)}


def test_arrays_come_back():
    state = unpack_state(pack_state(STATE))
    assert all(np.array_equal(state[name], array) for name, array in STATE.items())
    assert [array.dtype for array in state.values()] == [array.dtype for array in STATE.values()]


@pytest.mark.parametrize(
    "kind", ["<f8,(", "(,)f8", "|O8", "<f8,<f8", "(9,)<f8", "<M8[s]", "f8", "", 3, None, b"<f8"]
)
def test_other_kinds_are_refused(kind):
    with pytest.raises(StateError, match="a stored model cannot be read"):
        unpack_state(msgspec.msgpack.encode({"a": (kind, [0], b"")}))
