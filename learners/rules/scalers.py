"""Online feature scaling for rules that learn.

A scaler's statistics change in `learn` only, so they are a fold over the labelled rows in order.
When a row is only looked at, it counts in its own scaling as if it had just been added: the rule
sees the present row's features, never its label, and a value far outside of what was seen before
cannot become arbitrarily large (a z-score that counts itself is at most sqrt(n - 1)).

    zscore   (x - mean) / standard deviation, cut at +-4
    log      sign(z) * ln(1 + |z|) of the same z, not cut: keeps the order of far values, tames them
    rank     mid-rank among the rows so far, centred and scaled to variance 1; blind to outliers and
             to any increasing transformation of a feature

Columns of categories (0 or 1) pass unscaled.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from learners.arrays.types import Floats, State
from learners.rules.expanded_columns import Columns
from learners.rules.grid import GRID_VERSION, Grid
from learners.rules.ranks import RankSketch
from learners.rules.running_variance import Moments
from learners.rules.states import array

Z_CLIP = 4.0
RANK_STEPS = 1024
"""Ranks in [-1, 1] are rounded to multiples of 1/1024 (see `CentredRanks`)."""
UNIFORM_DEVIATION = sqrt(1.0 / 3.0)
"""Standard deviation of a rank spread evenly over [-1, 1]."""


class Scaler(ABC):
    """Scales the real columns of a learner's rows; `columns.raw` gave them."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.width = int(columns.real.sum())

    def look(self, raw: Floats) -> Floats:
        """Scale each row as if it alone were added; changes nothing."""
        return self._place(raw, self._look(self._real(raw)))

    def learn(self, raw: Floats) -> Floats:
        """Add rows one after the other; return each scaled right after it was added."""
        return self._place(raw, self._learn(self._real(raw)))

    def _real(self, raw: Floats) -> Floats:
        return raw if self.columns.all_real else np.ascontiguousarray(raw[:, self.columns.real])

    def _place(self, raw: Floats, scaled: Floats) -> Floats:
        if self.columns.all_real:
            return scaled
        placed = raw.copy()
        placed[:, self.columns.real] = scaled
        return placed

    @abstractmethod
    def _look(self, values: Floats) -> Floats: ...

    @abstractmethod
    def _learn(self, values: Floats) -> Floats: ...

    @abstractmethod
    def state(self) -> State:
        """Return the statistics."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Put back what `state` returned."""

    @abstractmethod
    def merged(self, states: Sequence[State]) -> State:
        """Return the statistics of all rows of several partitions."""


class _Standardised(Scaler):
    """A scaler based on a running mean and variance."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.moments = Moments(self.width)

    def _look(self, values: Floats) -> Floats:
        return self._shape(self.moments.look(values).z_scores())

    def _learn(self, values: Floats) -> Floats:
        return self._shape(self.moments.learn(values).z_scores())

    @abstractmethod
    def _shape(self, z: Floats) -> Floats: ...

    def state(self) -> State:
        """Return the moments."""
        return self.moments.state()

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.moments.restore(state)

    def merged(self, states: Sequence[State]) -> State:
        """Return the moments of all rows."""
        return Moments.merged(states)


class ZScores(_Standardised):
    """z-scores, cut at +-4."""

    def _shape(self, z: Floats) -> Floats:
        return np.clip(z, -Z_CLIP, Z_CLIP)


class LogZScores(_Standardised):
    """z-scores on a logarithmic scale, both signs."""

    def _shape(self, z: Floats) -> Floats:
        return np.copysign(np.log1p(np.abs(z)), z)


class CentredRanks(Scaler):
    """Ranks in [-1, 1], as multiples of 1/1024, of values on a coarse grid (`Grid`).

    Rounded so, products of two ranks are multiples of 2^-20, and sums of up to 2^33 of them are
    exact in floating point: they do not depend on the order of summation.
    """

    def __init__(self, columns: Columns, capacity: int = 256) -> None:
        super().__init__(columns)
        self.sketch = RankSketch(self.width, capacity)
        self.grid = Grid(columns.space)

    def _look(self, values: Floats) -> Floats:
        return self._shape(self.sketch.look(self.grid.rounded(values)))

    def _learn(self, values: Floats) -> Floats:
        return self._shape(self.sketch.learn(self.grid.rounded(values)))

    def _shape(self, ranks: Floats) -> Floats:
        return np.asarray(np.rint((2.0 * ranks - 1.0) * RANK_STEPS) / RANK_STEPS)

    def state(self) -> State:
        """Return the sketch."""
        return {**self.sketch.state(), "grid": np.array(GRID_VERSION)}

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.sketch.restore(self._rounded(state))

    def merged(self, states: Sequence[State]) -> State:
        """Return a sketch of all rows."""
        merged = self.sketch.merged([self._rounded(state) for state in states])
        return {**merged, "grid": np.array(GRID_VERSION)}

    def _rounded(self, state: State) -> State:
        """Round the values of a state of earlier versions, which kept them as they were.

        Rounding keeps the order, so this is the sketch that rounded values would have led to.
        """
        if "grid" in state:
            return state
        values = array(state, "values", np.float64, (None, self.width))
        return {**state, "values": self.grid.rounded(values)}


class Ranks(CentredRanks):
    """Ranks scaled to variance 1."""

    def _shape(self, ranks: Floats) -> Floats:
        return super()._shape(ranks) / UNIFORM_DEVIATION


def make_scaler(scaling: str, columns: Columns) -> Scaler:
    """Return a fresh scaler by its name in the settings."""
    return SCALERS[scaling](columns)


SCALERS: dict[str, Callable[[Columns], Scaler]] = {
    "zscore": ZScores,
    "log": LogZScores,
    "rank": Ranks,
}
