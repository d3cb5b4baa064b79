"""Counts per cell: a dense array where the cells are few, a hash table where they are many.

Both hold one row of numbers per cell and behave the same. Rows of integers add up exactly, in any
order, so tables of several partitions merge without error. A cell that was never written reads as
the table's initial row.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from learners.errors import LearnerError
from learners.types import Ints

DENSE_LIMIT = 1 << 16
"""Up to this many cells a dense table is both smaller and faster."""

Rows = NDArray[Any]


class CellTable(ABC):
    """Maps a 64-bit cell id to a row of `width` numbers."""

    def __init__(self, width: int, dtype: DTypeLike, initial: Sequence[float] | None) -> None:
        self.width = width
        self.dtype = np.dtype(dtype)
        self.initial = np.zeros(width, self.dtype)
        if initial is not None:
            self.initial[:] = initial

    @abstractmethod
    def rows(self, cells: Ints) -> Rows:
        """Return a copy of the rows of `cells`, (n, width)."""

    @abstractmethod
    def add(self, cells: Ints, deltas: Rows) -> None:
        """Add `deltas` (n, width) to the rows; a cell may occur many times."""

    @abstractmethod
    def put(self, cells: Ints, rows: Rows) -> None:
        """Overwrite the rows of distinct `cells`."""

    @abstractmethod
    def items(self) -> tuple[Ints, Rows]:
        """Return all cells ever written, ascending, and their rows."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many cells were ever written."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the memory the table takes."""

    def merge(self, other: "CellTable") -> None:
        """Add what another table counted: exact for integers."""
        if other.width != self.width:
            raise LearnerError(f"cannot merge tables of widths {self.width} and {other.width}")
        self.add(*other.items())
