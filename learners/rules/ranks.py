"""A running rank of each column in bounded memory: a deterministic quantile sketch.

Level h holds at most `capacity` values per column that stand for 2^h rows each. New rows enter
level 0. A full level is sorted and every other value moves up, the even and the odd positions in
turn: the deterministic form of the compactor of Karnin, Lang and Liberty (2016), "Optimal quantile
approximation in streams", after Manku, Rajagopalan and Lindsay (1998).

Ranks are exact for the first `capacity - 1` rows. After n rows a count is off by at most
`levels above 0 * n / capacity`, and far less in practice since the turns cancel. Counts are
integers: they depend on the rows and their order alone, not on the cut into batches.
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import LearnerError
from learners.rules.states import array

_BLOCK = 64
"""Rows added at once; they are compared with each other pair by pair."""
_FEW = 8
"""Up to this many rows, comparing each with the open level beats sorting that level."""


class RankSketch:
    """Counts how many of the rows so far lie below a value, column by column."""

    def __init__(self, width: int, capacity: int = 256) -> None:
        if capacity < 2 or capacity % 2:
            raise LearnerError("a rank sketch needs an even capacity of 2 or more")
        self.width = width
        self.capacity = capacity
        self._set([np.empty((0, width))], [0])

    def _set(self, levels: list[Floats], turns: list[int]) -> None:
        self._levels = levels
        self._turns = turns
        self._open: Floats = np.empty((self.capacity, self.width))
        self._ones: Ints = np.tile(np.arange(self.capacity + 1), (self.width, 1))
        self._size = len(levels[0])
        self._open[: self._size] = levels[0]
        self._settle()

    def _settle(self) -> None:
        """Sort the closed levels once: they stay as they are until the open one is full."""
        closed = self._levels[1:]
        values = np.concatenate([np.empty((0, self.width)), *closed])
        weights = np.repeat(2 ** np.arange(1, len(closed) + 1), [len(v) for v in closed])
        order = values.argsort(axis=0, kind="stable")
        # One contiguous row per column, as searchsorted likes it.
        self._sorted: Floats = np.ascontiguousarray(np.take_along_axis(values, order, axis=0).T)
        self._below: Ints = np.zeros((self.width, len(values) + 1), np.int64)
        np.cumsum(weights[order].T, axis=1, out=self._below[:, 1:])
        self._closed_count = int(weights.sum())

    @property
    def count(self) -> int:
        """Return how many rows were added."""
        return self._closed_count + self._size

    def look(self, rows: Floats) -> Floats:
        """Return each value's mid-rank in (0, 1) as if its row alone were added.

        (values below + half of the equal ones, itself among them) / (count + 1)
        """
        return np.asarray((self._twice(rows) + 1) / (2 * (self.count + 1)))

    def learn(self, rows: Floats) -> Floats:
        """Add the rows one after the other; return each one's mid-rank right after it was added."""
        ranks = np.empty_like(rows)
        start = 0
        while start < len(rows):
            stop = min(start + _BLOCK, start + self.capacity - self._size, len(rows))
            ranks[start:stop] = self._add(rows[start:stop])
            start = stop
        return ranks

    def _add(self, block: Floats) -> Floats:
        """Add rows that fit into the open level; close it if that fills it."""
        n, before, earlier = len(block), self._size, self.count
        twice = self._twice(block)
        if n > 1:
            twice += _compare_earlier(block)
        self._open[before : before + n] = block
        self._size += n
        if self._size == self.capacity:
            self._close()
        counts = earlier + np.arange(1, n + 1)[:, None]
        return np.asarray((twice + 1) / (2 * counts))

    def _twice(self, rows: Floats) -> Ints:
        """Return (n, width): how many earlier rows are below plus how many are not above."""
        opened = self._open[: self._size]
        if len(rows) > _FEW:
            twice = _search(rows, np.sort(opened.T, axis=1), self._ones[:, : self._size + 1])
        else:
            twice = _compare(rows, opened)
        return twice + _search(rows, self._sorted, self._below) if self._closed_count else twice

    def _close(self) -> None:
        """Move every other value of each full level one up."""
        self._levels[0] = self._open[: self._size].copy()
        _compact(self._levels, self._turns, self.capacity)
        self._size = len(self._levels[0])
        self._open[: self._size] = self._levels[0]
        self._settle()

    def state(self) -> State:
        """Return the levels: their sizes, whose turn it is, and all values, level 0 first.

        Every column of a level is sorted by itself, so that no row is kept as it was.
        """
        levels = [np.sort(level, axis=0) for level in (self._open[: self._size], *self._levels[1:])]
        return {
            "sizes": np.array([len(level) for level in levels], np.int64),
            "turns": np.array(self._turns, np.int64),
            "values": np.concatenate(levels),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        sizes = array(state, "sizes", np.int64, (None,))
        turns = array(state, "turns", np.int64, (len(sizes),))
        values = array(state, "values", np.float64, (int(sizes.sum()), self.width))
        self._set(np.split(values, np.cumsum(sizes)[:-1]), turns.tolist())

    def merged(self, states: Sequence[State]) -> State:
        """Return a sketch of all rows of several states of this shape: levels join, then compact.

        The error bound stays that of one sketch of all rows.
        """
        depth = max(len(state["sizes"]) for state in states)
        split = [np.split(s["values"], np.cumsum(s["sizes"])[:-1]) for s in states]
        nothing = np.empty((0, self.width))
        levels = [
            np.concatenate([parts[h] if h < len(parts) else nothing for parts in split])
            for h in range(depth)
        ]
        turns = [0] * depth
        _compact(levels, turns, self.capacity)
        result = RankSketch(self.width, self.capacity)
        result._set(levels, turns)
        return result.state()


def _compact(levels: list[Floats], turns: list[int], capacity: int) -> None:
    """Halve full levels from the bottom up, until every level is below its capacity."""
    h = 0
    while h < len(levels):
        if len(levels[h]) >= capacity:
            even = len(levels[h]) // 2 * 2
            ordered = np.sort(levels[h][:even], axis=0)
            if h + 1 == len(levels):
                levels.append(ordered[:0])
                turns.append(0)
            levels[h + 1] = np.concatenate([levels[h + 1], ordered[turns[h] :: 2]])
            levels[h] = levels[h][even:]
            turns[h] ^= 1
        h += 1


def _search(rows: Floats, ordered: Floats, below: Ints) -> Ints:
    """Count in sorted columns: `below[j, i]` rows lie below the i-th value of column j."""
    left = np.empty(rows.shape[::-1], np.int64)
    right = np.empty_like(left)
    for j, (values, column) in enumerate(zip(ordered, np.ascontiguousarray(rows.T), strict=True)):
        left[j] = values.searchsorted(column, "left")
        right[j] = values.searchsorted(column, "right")
    twice = np.take_along_axis(below, left, axis=1) + np.take_along_axis(below, right, axis=1)
    return np.ascontiguousarray(twice.T)


def _compare(rows: Floats, values: Floats) -> Ints:
    """Count in unsorted values, each of weight 1."""
    below = (values[None] < rows[:, None]).sum(axis=1)
    return np.asarray(below + (values[None] <= rows[:, None]).sum(axis=1))


def _compare_earlier(block: Floats) -> Ints:
    """Count for each row among those before it in the block."""
    x = np.ascontiguousarray(block.T)
    # 2 where the other is below, 1 where it is equal; the earlier ones only.
    below = (x[:, None, :] < x[:, :, None]).astype(np.int8)
    below += x[:, None, :] <= x[:, :, None]
    below *= np.tri(len(block), k=-1, dtype=np.int8)
    return np.asarray(below.sum(axis=2, dtype=np.int64).T)
