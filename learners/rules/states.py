"""Named arrays in and out: how a rule made of parts keeps one flat state."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from learners.arrays.types import Floats, State
from learners.errors import LearnerError


def nest(part: str, state: State) -> State:
    """Return the state of a part under its name: `mean` becomes `scaler.mean`."""
    return {f"{part}.{key}": value for key, value in state.items()}


def part_of(state: State, part: str) -> State:
    """Return what `nest` put under a part's name."""
    prefix = f"{part}."
    return {key[len(prefix) :]: v for key, v in state.items() if key.startswith(prefix)}


def parts_of(states: Sequence[State], part: str) -> list[State]:
    """Return the same part of several states."""
    return [part_of(state, part) for state in states]


def array(state: State, key: str, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return a copy of an array of a stored state; None in `shape` stands for any length."""
    stored = state.get(key)
    if (
        stored is None
        or stored.dtype != np.dtype(dtype)
        or stored.ndim != len(shape)
        or any(w is not None and w != f for w, f in zip(shape, stored.shape, strict=True))
    ):
        raise LearnerError(
            f"a stored rule does not fit its settings: {key} is missing or has another shape;"
            " was the rule changed without a new name?"
        )
    return stored.copy()


def weighted(states: Sequence[State], key: str, shares: Sequence[float]) -> Floats:
    """Return the share-weighted mean of one array of several states."""
    total = states[0][key] * shares[0]
    for state, share in zip(states[1:], shares[1:], strict=True):
        total = total + state[key] * share
    return np.asarray(total, np.float64)


def added(states: Sequence[State], key: str) -> NDArray[Any]:
    """Return the sum of one array of several states."""
    total = states[0][key].copy()
    for state in states[1:]:
        total += state[key]
    return total
