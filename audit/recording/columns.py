"""Columns that grow batch by batch: the form of a recording in memory."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from learners.arrays.types import Bools, Ints


class Ids:
    """Instance ids as small numbers, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}

    def of(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of some ids; new ids get the next ones."""
        number = self._number
        return [number.setdefault(name, len(number)) for name in names]

    def find(self, name: str) -> int:
        """Return the number of an id, -1 if it was not seen."""
        return self._number.get(name, -1)

    def names(self) -> list[str]:
        """Return all ids; the i-th has number i."""
        return list(self._number)

    def __len__(self) -> int:
        return len(self._number)


class Columns:
    """Named columns of numbers; a column may have several numbers per row.

    >>> columns = Columns(id=np.int64, x=(np.float64, 2))
    >>> columns.add(id=[4, 7], x=[[0.5, 1.0], [0.0, 0.25]])
    >>> columns["x"].tolist(), len(columns)
    ([[0.5, 1.0], [0.0, 0.25]], 2)
    """

    def __init__(self, **kinds: DTypeLike | tuple[DTypeLike, int]) -> None:
        self._kinds = {k: v if isinstance(v, tuple) else (v, None) for k, v in kinds.items()}
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}

    def add(self, **rows: Sequence[Any] | NDArray[Any]) -> None:
        """Append rows: all columns of them, or none if a value does not fit its column."""
        arrays = {}
        for name, part in rows.items():
            kind, width = self._kinds[name]
            array = np.array(part, np.dtype(kind))
            arrays[name] = array if width is None else array.reshape(-1, width)
        for name, array in arrays.items():
            self._parts[name].append(array)

    def __getitem__(self, name: str) -> NDArray[Any]:
        parts = self._parts[name]
        if len(parts) != 1:
            kind, width = self._kinds[name]
            shape = (0,) if width is None else (0, width)
            joined = np.concatenate([np.zeros(shape, np.dtype(kind)), *parts])
            parts[:] = [joined]
        return parts[0]

    def __len__(self) -> int:
        return len(self[next(iter(self._parts))])


def count(ids: Ints, size: int) -> Ints:
    """Return how often each number below `size` occurs."""
    return np.bincount(ids, minlength=size)


def firsts(ids: Ints, size: int) -> Ints:
    """Return where each number below `size` occurs first, -1 where it does not.

    >>> firsts(np.array([2, 0, 2]), 4).tolist()
    [1, -1, 0, -1]
    """
    places = np.full(size, -1, np.int64)
    places[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return places


def lasts(ids: Ints, size: int) -> Ints:
    """Return where each number below `size` occurs last, -1 where it does not.

    >>> lasts(np.array([2, 0, 2]), 4).tolist()
    [1, -1, 2, -1]
    """
    places = np.full(size, -1, np.int64)
    places[ids] = np.arange(len(ids))
    return places


def occurrences(ids: Ints) -> Ints:
    """Return, for each entry, how often its number occurred before.

    >>> occurrences(np.array([5, 3, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ids) else order
    runs = np.diff(np.r_[starts, len(ids)])
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids)) - np.repeat(starts, runs)
    return ranks


def first_of_each(ids: Ints) -> Bools:
    """Mark the first entry of each number."""
    marked = np.zeros(len(ids), np.bool_)
    marked[np.unique(ids, return_index=True)[1]] = True
    return marked
