"""Learning scalings and categories from a column, chunk by chunk, in bounded memory.

The results are those of the scalings' own `fit` on the whole column, except that quantiles come
from a random sample once a column is longer than the sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any

import numpy as np

from learners.arrays.types import Floats
from learners.local.scaling import MinMax, Quantile
from schemas.kinds import is_missing
from settings.errors import InputError
from settings.proposing.csv_file import Chunk
from settings.sections.features import FeatureSettings, Scale

MAX_CATEGORIES = 1_000
SAMPLE = 100_000
"""Values kept for quantiles: enough to know the share below a knot within 0.5 % (three sigma)."""


class Fit(ABC):
    """What is learned about one column."""

    rows = 0
    blanks = 0

    def take(self, chunk: Chunk, name: str) -> None:
        """Learn from the next chunk of the column."""
        self.rows += len(chunk.lines)
        self.blanks += int(chunk.blank(name).sum())
        self._take(chunk, name)

    @abstractmethod
    def _take(self, chunk: Chunk, name: str) -> None: ...

    def learned(self, name: str) -> dict[str, Any]:
        """Return what was learned, as keys and values of the settings file."""
        if self.rows == self.blanks:
            raise InputError(f"column {name!r} is empty")
        return self._learned()

    @abstractmethod
    def _learned(self) -> dict[str, Any]: ...


@dataclass
class RangeFit(Fit):
    """Smallest and largest value."""

    low: float = np.inf
    high: float = -np.inf

    def _take(self, chunk: Chunk, name: str) -> None:
        values = chunk.numbers(name)
        if len(values):
            self.low = min(self.low, float(values.min()))
            self.high = max(self.high, float(values.max()))

    def _learned(self) -> dict[str, Any]:
        scaling = MinMax.fit([self.low, self.high])
        return {"low": scaling.low, "high": scaling.high}


@dataclass
class MomentFit(Fit):
    """Mean and standard deviation, by the pairwise update of Chan, Golub and LeVeque (1983)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean

    def _take(self, chunk: Chunk, name: str) -> None:
        values = chunk.numbers(name)
        if len(values):
            self.add(values)

    def add(self, values: Floats) -> None:
        """Learn from some more values, at least one."""
        total = self.n + len(values)
        mean = float(values.mean())
        shift = mean - self.mean
        self.squares += float(((values - mean) ** 2).sum())
        self.squares += shift**2 * self.n * len(values) / total
        self.mean += shift * len(values) / total
        self.n = total

    def _learned(self) -> dict[str, Any]:
        std = float(np.sqrt(self.squares / self.n))
        # Equal values in chunks have means that differ in their last bits.
        if std <= 1e-12 * abs(self.mean):
            std = 1.0
        return {"mean": rounded(self.mean, std), "std": rounded(std, std)}


def moments(values: Floats) -> dict[str, Any]:
    """Return mean and standard deviation of a whole column, as the settings file writes them."""
    fit = MomentFit()
    fit.add(values)
    return fit._learned()


@dataclass
class QuantileFit(Fit):
    """Knots at equal shares: exact up to SAMPLE values, then of a uniform sample of them.

    Each value draws a number, and those with the smallest numbers are kept: a reservoir that takes
    whole chunks. The seed is fixed, so the same file gives the same knots.
    """

    values: Floats = field(default_factory=lambda: np.empty(0))
    draws: Floats = field(default_factory=lambda: np.empty(0))
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def _take(self, chunk: Chunk, name: str) -> None:
        numbers = chunk.numbers(name)
        self.values = np.concatenate([self.values, numbers])
        self.draws = np.concatenate([self.draws, self.generator.random(len(numbers))])
        # Trimming only at twice the size makes its cost per value constant.
        if len(self.values) > 2 * SAMPLE:
            self._trim()

    def _trim(self) -> None:
        if len(self.values) > SAMPLE:
            sample = np.argpartition(self.draws, SAMPLE)[:SAMPLE]
            self.values, self.draws = self.values[sample], self.draws[sample]

    def _learned(self) -> dict[str, Any]:
        self._trim()
        knots = Quantile.fit(self.values).knots
        gaps = np.diff(knots)
        # The smallest step, not the range: an outlier must not blur the bulk of the data.
        step = float(gaps[gaps > 0].min()) if gaps.any() else 0.0
        return {"knots": [rounded(knot, step) for knot in knots]}


@dataclass
class CategoryFit(Fit):
    """The distinct texts: known ones keep their positions, new ones follow, sorted."""

    known: Sequence[str] = ()
    seen: set[str] = field(default_factory=set)

    def _take(self, chunk: Chunk, name: str) -> None:
        self.seen.update(text.strip() for text in chunk.columns[name])
        if len(self.seen) > MAX_CATEGORIES:
            raise InputError(
                f"column {name!r} has more than {MAX_CATEGORIES} different texts:"
                " too many to be categories"
            )

    def _learned(self) -> dict[str, Any]:
        new = (text for text in self.seen - set(self.known) if not is_missing(text))
        return {"categories": [*self.known, *sorted(new)]}


def fit_for(feature: FeatureSettings, scale: Scale | None = None) -> Fit:
    """Return the fit of a feature's column; `scale` replaces the scale of a real feature."""
    if feature.categories is not None:
        return CategoryFit(known=feature.categories)
    return scale_fit(scale or ("minmax" if feature.scaling == "online" else feature.scaling))


def scale_fit(scale: Scale) -> Fit:
    """Return the fit of a real column for a scale; one that is learned online needs none."""
    fits: dict[Scale, type[Fit]] = {
        "online": MomentFit,
        "minmax": RangeFit,
        "zlog": MomentFit,
        "quantile": QuantileFit,
    }
    return fits[scale]()


def rounded(value: float, spread: float) -> float:
    """Drop digits far below the spread of a column, to make the number readable.

    >>> rounded(14.127291739894552, 3.52), rounded(1.7e9 + 1 / 3, 100.0)
    (14.127292, 1700000000.3333)
    """
    if not spread:
        return value
    return float(round(value, 6 - floor(log10(spread))))
