"""How a raw value of a real feature becomes a number in [0, 1].

Each scaling works on a whole matrix whose columns share it, so a learner's batch is scaled in one
step. Values outside what was seen when the scaling was fitted are clipped to the edge. `Online` is
not fitted at all: its learner moves it along with what it learns.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from learners.arrays.types import Floats
from learners.errors import LearnerError

QUANTILE_KNOTS = 33
"""Knots of a fitted quantile scaling: 32 steps of equal share."""

_TINY = 1e-300


class Scaling(ABC):
    """A non-decreasing map from the reals into [0, 1]."""

    @classmethod
    @abstractmethod
    def fit(cls, values: ArrayLike) -> "Scaling":
        """Learn the scaling from a column of finite values."""

    @staticmethod
    @abstractmethod
    def apply(scalings: "Sequence[Scaling]", columns: Floats) -> Floats:
        """Scale (n, k) columns, the j-th by `scalings[j]`; all are of this class."""

    @property
    @abstractmethod
    def centre(self) -> float:
        """Return the value that is scaled to the middle of [0, 1]."""


@dataclass(frozen=True, slots=True)
class MinMax(Scaling):
    """`(x - low) / (high - low)`, clipped."""

    low: float
    high: float

    def __post_init__(self) -> None:
        # A span below the normal range of floats would lose the division's precision.
        if not (np.isfinite([self.low, self.high]).all() and self.high - self.low >= _TINY):
            raise LearnerError("min-max scaling needs finite low < high")

    @classmethod
    def fit(cls, values: ArrayLike) -> "MinMax":
        """Take the range of the values; a constant column gets a range of one around it."""
        column = _column(values)
        low, high = float(column.min()), float(column.max())
        return cls(low, high) if high - low >= _TINY else cls(low - 0.5, high + 0.5)

    @property
    def centre(self) -> float:
        """Return the middle of the range."""
        return self.low + (self.high - self.low) / 2.0

    @staticmethod
    def apply(scalings: Sequence[Scaling], columns: Floats) -> Floats:
        """Scale each column by its range."""
        low, high = _parameters(scalings, "low", "high")
        return np.asarray((np.clip(columns, low, high) - low) / (high - low))


@dataclass(frozen=True, slots=True)
class ZLogistic(Scaling):
    """The logistic function of the z-score: an even number of cuts splits at the mean."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.mean, self.std]).all() and self.std >= _TINY):
            raise LearnerError("z-score scaling needs a finite mean and a finite std > 0")

    @classmethod
    def fit(cls, values: ArrayLike) -> "ZLogistic":
        """Take mean and standard deviation; a constant column gets a deviation of one."""
        column = _column(values)
        std = float(column.std())
        return cls(float(column.mean()), std if std >= _TINY else 1.0)

    @property
    def centre(self) -> float:
        """Return the mean."""
        return self.mean

    @staticmethod
    def apply(scalings: Sequence[Scaling], columns: Floats) -> Floats:
        """Scale each column by its mean and deviation."""
        mean, std = _parameters(scalings, "mean", "std")
        # Beyond 40 deviations the logistic function is 0 or 1 in floating point.
        z = (np.clip(columns, mean - 40.0 * std, mean + 40.0 * std) - mean) / std
        return np.asarray(1.0 / (1.0 + np.exp(-z)))


@dataclass(slots=True, eq=False)
class Online(Scaling):
    """As `ZLogistic`, by mean and deviation of the values learned so far.

    Each learner has its own, and its `Moments` move it.
    """

    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def fit(cls, values: ArrayLike) -> "Online":
        """Begin with nothing: it is learned."""
        del values
        return cls()

    @property
    def centre(self) -> float:
        """Return 0: nothing is known before the first value."""
        return 0.0

    @staticmethod
    def apply(scalings: Sequence[Scaling], columns: Floats) -> Floats:
        """Scale each column by its mean and deviation so far."""
        return ZLogistic.apply(scalings, columns)


@dataclass(frozen=True, slots=True)
class Quantile(Scaling):
    """The share of fitted values below x, linear between `knots` of equal share."""

    knots: tuple[float, ...]

    def __post_init__(self) -> None:
        knots = np.asarray(self.knots, np.float64)
        if len(knots) < 2 or not np.isfinite(knots).all() or (np.diff(knots) < 0).any():
            raise LearnerError("quantile scaling needs two or more finite, ascending knots")

    @classmethod
    def fit(cls, values: ArrayLike, knots: int = QUANTILE_KNOTS) -> "Quantile":
        """Take the quantiles of the values."""
        return cls(tuple(np.quantile(_column(values), np.linspace(0.0, 1.0, knots)).tolist()))

    @property
    def centre(self) -> float:
        """Return the median."""
        shares = np.linspace(0.0, 1.0, len(self.knots))
        return float(np.interp(0.5, shares, self.knots))

    @staticmethod
    def apply(scalings: Sequence[Scaling], columns: Floats) -> Floats:
        """Scale each column by its knots."""
        scaled = np.empty_like(columns)
        for j, scaling in enumerate(scalings):
            assert isinstance(scaling, Quantile)  # noqa: S101 - tells mypy what the caller grouped
            shares = np.linspace(0.0, 1.0, len(scaling.knots))
            scaled[:, j] = np.interp(columns[:, j], scaling.knots, shares)
        return scaled


def _parameters(scalings: Sequence[Scaling], *names: str) -> list[Floats]:
    return [np.array([getattr(s, name) for s in scalings], np.float64) for name in names]


def _column(values: ArrayLike) -> Floats:
    column = np.asarray(values, np.float64)
    if column.ndim != 1 or not len(column) or not np.isfinite(column).all():
        raise LearnerError("a scaling is fitted to a non-empty column of finite values")
    return column
