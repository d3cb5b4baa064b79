"""A learner's features: what a row means, and where it lies in the unit cube.

Rows are (n, d) floats in the order of the features: the raw value of a real feature, the index of a
category. The paper works in [0, 1]^d and notes that categories fit in as well: here a category maps
to the middle of its own share of [0, 1], so that cutting that axis into as many parts as there are
categories gives one cell per category.

A value may be missing: nan, in raw rows and in the unit cube alike. A category that the settings do
not name counts as missing, too.

    >>> space = FeatureSpace((Real("age", MinMax(0, 100)), Categorical("sex", ("f", "m"))))
    >>> space.unit(np.array([[25.0, 1.0]])).tolist()
    [[0.25, 0.75]]
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError
from learners.local.scaling import MinMax, Online, Scaling

__all__ = ["Categorical", "Feature", "FeatureSpace", "MinMax", "Real"]


@dataclass(frozen=True, slots=True)
class Real:
    """A number with its scaling into [0, 1]; if it is required, readers refuse rows without it."""

    name: str
    scaling: Scaling
    required: bool = False


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of a finite set of categories."""

    name: str
    categories: tuple[str, ...]
    required: bool = False

    def __post_init__(self) -> None:
        if not self.categories or len(set(self.categories)) < len(self.categories):
            raise LearnerError(f"feature {self.name}: categories must be distinct, at least one")


Feature = Real | Categorical


@dataclass(frozen=True)
class FeatureSpace:
    """The features of one learner, in the order of its rows."""

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        if not self.features:
            raise LearnerError("a learner needs at least one feature")
        if len(set(self.names)) < len(self.features):
            raise LearnerError("the features of a learner must have different names")

    @property
    def d(self) -> int:
        """Return how many features there are."""
        return len(self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the features' names."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def category_counts(self) -> Ints:
        """(d,): how many categories each feature has, 0 for a real one."""
        return np.array(
            [len(f.categories) if isinstance(f, Categorical) else 0 for f in self.features]
        )

    @cached_property
    def online(self) -> dict[int, Online]:
        """The scalings that are learned online, by column."""
        scalings = {j: f.scaling for j, f in enumerate(self.features) if isinstance(f, Real)}
        return {j: scaling for j, scaling in scalings.items() if isinstance(scaling, Online)}

    @cached_property
    def _groups(self) -> list[tuple[type[Scaling], list[Scaling], Ints]]:
        """The real columns, grouped by the class of their scaling."""
        groups: dict[type[Scaling], tuple[list[Scaling], list[int]]] = {}
        for j, feature in enumerate(self.features):
            if isinstance(feature, Real):
                scalings, columns = groups.setdefault(type(feature.scaling), ([], []))
                scalings.append(feature.scaling)
                columns.append(j)
        return [(kind, scalings, np.array(js)) for kind, (scalings, js) in groups.items()]

    def check(self, rows: Floats) -> None:
        """Raise LearnerError unless `rows` is a complete (n, d) matrix with known categories."""
        if rows.ndim != 2 or rows.shape[1] != self.d:
            raise LearnerError(f"rows must have shape (n, {self.d}), not {rows.shape}")
        if not np.isfinite(rows).all():
            raise LearnerError("rows must be finite")
        for j in np.flatnonzero(self.category_counts):
            column = rows[:, j]
            if ((column < 0) | (column >= self.category_counts[j]) | (column % 1 != 0)).any():
                raise LearnerError(f"feature {self.names[j]}: unknown category index")

    def unit(self, rows: Floats) -> Floats:
        """Map rows into [0, 1]^d."""
        if len(self._groups) == 1 and len(self._groups[0][1]) == self.d:
            kind, scalings, _ = self._groups[0]
            return kind.apply(scalings, rows)
        unit = np.empty_like(rows)
        for kind, scalings, columns in self._groups:
            unit[:, columns] = kind.apply(scalings, rows[:, columns])
        categorical = np.flatnonzero(self.category_counts)
        unit[:, categorical] = (rows[:, categorical] + 0.5) / self.category_counts[categorical]
        return unit

    @cached_property
    def centre(self) -> Floats:
        """(d,): what fills gaps at first: the middle of a feature's scale, or its first category.

        >>> FeatureSpace((Real("age", MinMax(0, 100)), Categorical("sex", ("f", "m")))).centre
        array([50.,  0.])
        """
        return np.array([f.scaling.centre if isinstance(f, Real) else 0.0 for f in self.features])

    @cached_property
    def expanded_names(self) -> tuple[str, ...]:
        """Return the column names of `expand`: `name` or `name=category`."""
        names: list[str] = []
        for feature in self.features:
            if isinstance(feature, Categorical):
                names += [f"{feature.name}={category}" for category in feature.categories]
            else:
                names.append(feature.name)
        return tuple(names)

    def expand(self, rows: Floats) -> Floats:
        """Return real columns as they are and each categorical one as a column per category."""
        return np.concatenate([self._columns(rows, j) for j in range(self.d)], axis=1)

    def _columns(self, rows: Floats, j: int) -> Floats:
        count = self.category_counts[j]
        if not count:
            return rows[:, j : j + 1]
        return np.asarray(rows[:, j : j + 1] == np.arange(count), np.float64)

    def columns(self, rows: Floats) -> dict[str, np.ndarray]:
        """Return the rows by feature name, categories as their names."""
        named: dict[str, np.ndarray] = {}
        for j, feature in enumerate(self.features):
            if isinstance(feature, Categorical):
                named[feature.name] = np.array(feature.categories)[rows[:, j].astype(np.int64)]
            else:
                named[feature.name] = rows[:, j]
        return named


def unit_cube(d: int) -> FeatureSpace:
    """Return the paper's own space: d real features that lie in [0, 1] already."""
    return FeatureSpace(tuple(Real(f"x{j}", MinMax(0.0, 1.0)) for j in range(d)))
