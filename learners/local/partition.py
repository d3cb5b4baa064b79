"""The partition of a learner's instances into cells (the paper's P_i, "hypercubes").

Each real axis of the unit cube is cut into `m` equal parts, each categorical one into its
categories. A cell's id is its position in mixed radix, one digit per feature: a 64-bit integer, so
the number of cells may be far beyond memory. Every point has exactly one cell: a point on an inner
edge belongs to the upper cell, x = 1 to the last.

    >>> grid = Partition(unit_cube(2), m=2)
    >>> grid.cells(np.array([[0.0, 0.0], [0.5, 0.0], [0.2, 1.0], [1.0, 1.0]])).tolist()
    [0, 1, 2, 3]

A missing value (nan) has a part of its own on every axis that is cut. Points with a missing value
make a second partition, numbered from the largest id downwards: the cells of complete points keep
their ids, whatever else comes. Each of the two is a partition as Theorem 1 has it, for the stream
of its own points: two points of a cell lack the same values and are near in the others.

    >>> (MAX_CELLS - grid.cells(np.array([[np.nan, 0.2], [0.7, np.nan]]))).tolist()
    [2, 7]
"""

import math
from functools import cached_property
from math import log

import numpy as np

from learners.arrays.types import Bools, Floats, Ints
from learners.errors import LearnerError
from learners.local.features import FeatureSpace, unit_cube

__all__ = ["Partition", "cuts_for", "unit_cube"]

MAX_CELLS = 2**63 - 1
_MOST_INCOMPLETE = 2**56
"""At most this many cells of incomplete points are numbered, so that many phases have room.
With two parts per axis that is enough for 35 features."""
_EXACT_IN_FLOAT = 2**53
_EXACT_IN_FLOAT32 = 2**24


def cuts_for(horizon: int, alpha: float, d: int, max_cuts: int | None = None) -> int:
    """Return the paper's partitioning parameter `m = ceil(T^(1/(2*alpha+d)))`.

    `max_cuts` is the memory bound `M_i` of Remark 1. The result is the smallest m with
    `m^(2*alpha+d) >= T`, checked in the log domain, so that a perfect power is not rounded up.

        >>> cuts_for(10_000, alpha=1.0, d=10), cuts_for(10_000, alpha=1.65, d=10)
        (3, 2)
        >>> cuts_for(16, alpha=1.0, d=2)
        2
    """
    if d == 0:
        return 1
    power = 2 * alpha + d
    m = max(1, round(math.pow(horizon, 1 / power)))
    slack = 1e-12 * log(horizon)
    while power * log(m) < log(horizon) - slack:
        m += 1
    while m > 1 and power * log(m - 1) >= log(horizon) - slack:
        m -= 1
    return m if max_cuts is None else min(m, max_cuts)


class Grid:
    """Numbers the cells of a product of axes, those of points with a missing value included.

    radices      how many parts each axis has
    size         how many cells there are for complete points: ids 0 … size - 1
    incomplete   how many for the others: ids MAX_CELLS - incomplete + 1 … MAX_CELLS
    """

    def __init__(self, radices: Ints) -> None:
        self.radices = radices
        self.strides = _strides(radices)
        self.size = _product(radices)
        # Where an axis is not cut, it does not matter whether its value is missing.
        self._cut: Bools = radices > 1
        self._open: Ints = np.where(self._cut, radices + 1, 1)
        if _product(self._open) > _MOST_INCOMPLETE:
            self._open = np.ones_like(radices)  # too many to number: they share one cell
        self._open_strides = _strides(self._open)
        self.incomplete = _product(self._open)

    def holds(self, cell: int) -> bool:
        """Tell whether there is a cell with this id."""
        return 0 <= cell < self.size or 0 <= MAX_CELLS - cell < self.incomplete

    def cells(self, digits: Ints, missing: Bools) -> Ints:
        """Return the ids of cells; a digit does not count where the value is missing."""
        missing = missing & self._cut
        complete = np.where(missing, 0, digits) @ self.strides
        opened = np.where(missing, self.radices, digits) % self._open @ self._open_strides
        return np.where(missing.any(axis=1), MAX_CELLS - opened, complete)

    def digits(self, cells: Ints) -> tuple[Ints, Bools]:
        """Return (n, d): where cells lie on each axis, and where their values are missing."""
        complete = (cells < self.size)[:, None]
        opened = ((MAX_CELLS - cells)[:, None] // self._open_strides) % self._open
        digits = np.where(complete, (cells[:, None] // self.strides) % self.radices, opened)
        shared = ~complete & (self._open == 1)
        return digits, (~complete & (digits == self.radices)) | (shared & self._cut)


class Partition:
    """Cells of a feature space, `m` per real axis."""

    def __init__(self, space: FeatureSpace, m: int) -> None:
        if m < 1:
            raise LearnerError(f"a partition needs at least one part per axis, not {m}")
        self.space = space
        self.m = m
        self.radices: Ints = np.where(space.category_counts > 0, space.category_counts, m)
        self.grid = Grid(self.radices)
        self.size = self.grid.size
        if self.size > MAX_CELLS:
            raise LearnerError(
                f"{space.d} features cut {m} ways make more cells than a 64-bit id can name; "
                "use fewer features, fewer cuts (max_cuts) or a larger alpha"
            )
        self._strides = self.grid.strides
        # One number where all axes are cut alike: numpy then runs over the matrix in one go.
        same = (self.radices == self.radices[0]).all()
        self._scale = float(self.radices[0]) if same else self.radices.astype(np.float64)
        self._last = self._scale - 1.0
        halves = (self.radices == 2).all() and self.size <= _EXACT_IN_FLOAT32
        self._halves = self._strides.astype(np.float32) if halves else None
        self._float_strides = self._strides.astype(np.float64)

    @property
    def d(self) -> int:
        """Return the number of real features, the paper's `d_i`."""
        return int((self.space.category_counts == 0).sum())

    def cells(self, unit: Floats) -> Ints:
        """Return the cell id of each point of the unit cube; missing values are nan."""
        missing: Bools = np.isnan(unit)
        if missing.any():
            complete = self._complete_cells(np.where(missing, 0.0, unit))
            return self.grid.cells(self.digits(complete), missing)
        return self._complete_cells(unit)

    def _complete_cells(self, unit: Floats) -> Ints:
        if self._halves is not None:
            # The same as below at a third of the cost; m = 2 is the paper's own setting.
            return ((unit >= 0.5).astype(np.float32) @ self._halves).astype(np.int64)
        digits = unit * self._scale
        np.floor(digits, out=digits)
        np.minimum(digits, self._last, out=digits)
        if self.size <= _EXACT_IN_FLOAT:
            # Ids below 2^53 are exact in floating point, and this product runs in BLAS.
            return (digits @ self._float_strides).astype(np.int64)
        return np.asarray(digits.astype(np.int64) @ self._strides)

    def context_cells(self, rows: Floats) -> Ints:
        """Return the cell of each raw row; `size` where a value is missing.

        That is the cell of contexts that do not come: the ensemble learner has no other for them.
        """
        return np.minimum(self.cells(self.space.unit(rows)), self.size)

    def digits(self, cells: Ints) -> Ints:
        """Return (n, d): where each cell of complete points lies on each axis."""
        return (cells[:, None] // self._strides) % self.radices

    @cached_property
    def coarser(self) -> "tuple[Coarsening, ...]":
        """The chain of ever coarser partitions that nest in this one; the last is one cell.

        Each step joins neighbours in pairs along the real axes; the last one drops the categories.
        """
        chain: list[Coarsening] = []
        radices = self.radices
        categorical = self.space.category_counts > 0
        shift = 0
        while (radices[~categorical] > 1).any():
            shift += 1
            halved = -(-self.radices // 2**shift)
            radices = np.where(categorical, self.radices, halved)
            chain.append(Coarsening(self, np.where(categorical, 1, 2**shift), radices))
        if (radices > 1).any():
            chain.append(Coarsening(self, self.radices, np.ones_like(radices)))
        return tuple(chain)


class Coarsening:
    """Maps the cells of a partition to the cells of a coarser one that contains them."""

    def __init__(self, fine: Partition, join: Ints, radices: Ints) -> None:
        self._fine = fine
        self._join = join
        self._grid = Grid(radices)
        self.size = self._grid.size

    def cells(self, fine_cells: Ints) -> Ints:
        """Return the coarse cell of each fine cell."""
        if self.size == 1:
            return np.zeros(len(fine_cells), np.int64)
        if len(fine_cells) and fine_cells.max() >= self._fine.size:
            digits, missing = self._fine.grid.digits(fine_cells)
            return self._grid.cells(digits // self._join, missing)
        return np.asarray((self._fine.digits(fine_cells) // self._join) @ self._grid.strides)


def _strides(radices: Ints) -> Ints:
    return np.concatenate([[1], np.cumprod(radices[:-1])]).astype(np.int64)


def _product(radices: Ints) -> int:
    size = 1
    for radix in radices.tolist():
        size *= radix
    return size
