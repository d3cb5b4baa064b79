"""Running mean and variance of columns, as sums around the mean of the first rows.

    count n,  shift,  total = sum(x - shift),  squares = sum((x - shift)^2)
    mean - shift = total / n,     variance = squares / n - (total / n)^2

The shift is the first row up to the eighth, which moves it to the mean of the eight: from then on
nobody's values are kept as they were.

Welford's recurrence would do the same row by row in Python. Sums can be taken for a whole batch by
`np.add.accumulate`, which adds strictly one after the other, so any cut into batches gives the same
bits. The textbook danger of this formula, cancellation, is absent: the shift is one of the rows or
the mean of eight, so `(mean - shift)^2` is at most n times the variance (Chan, Golub, LeVeque 1983,
"Algorithms for computing the sample variance").
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.rules.states import array

SETTLES = 8
"""The row with which the shift moves from the first row to the mean."""


class Spread(NamedTuple):
    """Where rows lie among the rows so far: `offset` = x - mean, and the `variance`."""

    offset: Floats
    variance: Floats

    def z_scores(self) -> Floats:
        """Return offset / standard deviation, 0 where nothing varies yet."""
        deviation = np.sqrt(self.variance)
        return np.divide(
            self.offset, deviation, out=np.zeros_like(self.offset), where=deviation > 0.0
        )


class Moments:
    """Count, mean and variance of each column of the rows seen so far."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.shift: Floats = np.zeros(width)
        self.total: Floats = np.zeros(width)
        self.squares: Floats = np.zeros(width)

    def look(self, rows: Floats) -> Spread:
        """Return each row's spread as if that row alone were added; changes nothing."""
        offset = rows - self.shift if self.count else np.zeros_like(rows)
        return _spread(offset, self.count + 1, self.total + offset, self.squares + offset * offset)

    def learn(self, rows: Floats) -> Spread:
        """Add the rows one after the other; return each row's spread right after it was added."""
        if not self.count:
            self.shift = rows[0].copy()
        first = SETTLES - self.count
        if not 0 < first <= len(rows):
            return self._add(rows)
        begin = self._add(rows[:first])
        self._settle()
        if first == len(rows):
            return begin
        parts = zip(begin, self._add(rows[first:]), strict=True)
        return Spread(*map(np.concatenate, parts))

    def _settle(self) -> None:
        """Move the shift to the mean."""
        mean = self.total / self.count
        self.shift = self.shift + mean
        self.squares = np.maximum(self.squares - self.total * mean, 0.0)
        self.total = np.zeros_like(self.total)

    def _add(self, rows: Floats) -> Spread:
        offset = rows - self.shift
        totals = _running(self.total, offset)
        squares = _running(self.squares, offset * offset)
        counts = np.arange(self.count + 1, self.count + len(rows) + 1)[:, None]
        self.count += len(rows)
        self.total, self.squares = totals[-1].copy(), squares[-1].copy()
        return _spread(offset, counts, totals, squares)

    def state(self) -> State:
        """Return the sums."""
        return {
            "count": np.array([self.count], np.int64),
            "settled": np.array([self.count >= SETTLES]),
            "shift": self.shift.copy(),
            "total": self.total.copy(),
            "squares": self.squares.copy(),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned; states of earlier versions never settled."""
        width = len(self.shift)
        self.count = int(array(state, "count", np.int64, (1,))[0])
        self.shift = array(state, "shift", np.float64, (width,))
        self.total = array(state, "total", np.float64, (width,))
        self.squares = array(state, "squares", np.float64, (width,))
        if self.count >= SETTLES and "settled" not in state:
            self._settle()

    @staticmethod
    def merged(states: Sequence[State]) -> State:
        """Return the moments of all rows of several states, around the first state's shift."""
        filled = [state for state in states if state["count"][0]] or [states[0]]
        shift = filled[0]["shift"]
        total, squares, count = np.zeros_like(shift), np.zeros_like(shift), 0
        for state in filled:
            n, move = int(state["count"][0]), state["shift"] - shift
            count += n
            total = total + (state["total"] + n * move)
            squares = squares + (state["squares"] + 2.0 * move * state["total"] + n * move * move)
        return {
            "count": np.array([count], np.int64),
            "settled": np.array([count >= SETTLES]),
            "shift": shift.copy(),
            "total": total,
            "squares": squares,
        }


def _running(start: Floats, rows: Floats) -> Floats:
    """Return start + row 0, start + row 0 + row 1, …"""
    return np.asarray(np.add.accumulate(np.concatenate([start[None], rows]))[1:])


def _spread(offset: Floats, count: int | Ints, total: Floats, squares: Floats) -> Spread:
    mean = total / count
    return Spread(offset - mean, np.maximum(squares / count - mean * mean, 0.0))
