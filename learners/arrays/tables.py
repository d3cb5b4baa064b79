"""Counts per cell: a dense array where the cells are few, a hash table where they are many.

Both hold one row of 8-byte numbers per cell and behave the same. Rows of integers add up exactly,
in any order, so tables of several partitions merge without error. A cell that was never written
reads as the table's initial row, and costs no memory in the hash table.

    >>> table = table_for(cells=None, width=2)
    >>> table.add(np.array([7, 1 << 60, 7]), np.array([[1, 0], [1, 1], [1, 1]]))
    >>> table.rows(np.array([7, 8])).tolist()
    [[2, 1], [0, 0]]
    >>> len(table)
    2
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from learners.arrays.types import Bools, Ints
from learners.errors import LearnerError

DENSE_LIMIT = 1 << 16
"""Up to this many cells a dense table is both smaller and faster."""

Rows = NDArray[Any]


class CellTable(ABC):
    """Maps a 64-bit cell id, 0 or greater, to a row of `width` numbers."""

    def __init__(self, width: int, dtype: DTypeLike, initial: Sequence[float] | None) -> None:
        self.width = width
        self.dtype = np.dtype(dtype)
        if self.dtype.itemsize != 8:
            raise LearnerError(f"a table holds 8-byte numbers, not {self.dtype}")
        self.initial = np.zeros(width, self.dtype)
        if initial is not None:
            self.initial[:] = initial

    @abstractmethod
    def rows(self, cells: Ints) -> Rows:
        """Return a copy of the rows of `cells`, (n, width)."""

    @abstractmethod
    def claim(self, cells: Ints) -> Ints:
        """Return each cell's place, creating new ones; valid for `bump` until the next claim."""

    @abstractmethod
    def bump(self, places: Ints, columns: Ints | int, amounts: Rows | int) -> None:
        """Add one amount to one column of each place; a place may occur many times."""

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

    def add(self, cells: Ints, deltas: Rows) -> None:
        """Add `deltas` (n, width) to the rows; a cell may occur many times."""
        places = self.claim(cells)
        for column in range(self.width):
            self.bump(places, column, deltas[:, column])

    def merge(self, other: "CellTable") -> None:
        """Add what another table counted: exact for integers."""
        if other.width != self.width:
            raise LearnerError(f"cannot merge tables of widths {self.width} and {other.width}")
        self.add(*other.items())


class DenseTable(CellTable):
    """One array row per cell of a small id space; a cell is its own place.

    Cells beyond that space, such as those of instances with missing values, are in a hash table
    whose places follow the array's.
    """

    def __init__(
        self,
        cells: int,
        width: int,
        dtype: DTypeLike = np.int64,
        initial: Sequence[float] | None = None,
    ) -> None:
        super().__init__(width, dtype, initial)
        self._rows = np.tile(self.initial, (cells, 1))
        self._written: Bools = np.zeros(cells, np.bool_)
        self._beyond = SparseTable(width, dtype, initial)

    def rows(self, cells: Ints) -> Rows:
        """Return a copy of the rows of `cells`, (n, width)."""
        beyond = self._are_beyond(cells)
        if beyond is None:
            return self._rows.take(cells, axis=0)
        rows = self._rows.take(np.where(beyond, 0, cells), axis=0)
        rows[beyond] = self._beyond.rows(cells[beyond])
        return rows

    def _are_beyond(self, cells: Ints) -> Bools | None:
        """Return which cells or places are not in the array; None if all are."""
        if not len(cells) or cells.max() < len(self._rows):
            return None
        return np.asarray(cells >= len(self._rows))

    def claim(self, cells: Ints) -> Ints:
        """Return a place for each cell."""
        beyond = self._are_beyond(cells)
        if beyond is None:
            self._written[cells] = True
            return cells
        self._written[cells[~beyond]] = True
        places = cells.copy()
        places[beyond] = len(self._rows) + self._beyond.claim(cells[beyond])
        return places

    def bump(self, places: Ints, columns: Ints | int, amounts: Rows | int) -> None:
        """Add one amount to one column of each place; a place may occur many times."""
        beyond = self._are_beyond(places)
        flat = self._rows.reshape(-1)
        if beyond is None:
            np.add.at(flat, places * self.width + columns, amounts)
            return
        columns = np.broadcast_to(columns, beyond.shape)
        amounts = np.broadcast_to(amounts, beyond.shape)
        inside = ~beyond
        np.add.at(flat, places[inside] * self.width + columns[inside], amounts[inside])
        outside = places[beyond] - len(self._rows)
        self._beyond.bump(outside, columns[beyond], amounts[beyond])

    def add(self, cells: Ints, deltas: Rows) -> None:
        """Add `deltas` (n, width) to the rows; a cell may occur many times."""
        if self._are_beyond(cells) is not None:
            super().add(cells, deltas)
        elif len(self._rows) == 1 and self.dtype.kind == "i" and len(cells):
            # There is only one cell, and integers add up in any order.
            self._written[0] = True
            self._rows[0] += deltas.sum(axis=0)
        elif len(cells) < self.width:
            # A few wide rows: one call for all columns.
            self._written[cells] = True
            np.add.at(self._rows, cells, deltas)
        else:
            super().add(cells, deltas)

    def put(self, cells: Ints, rows: Rows) -> None:
        """Overwrite the rows of distinct `cells`."""
        beyond = self._are_beyond(cells)
        if beyond is not None:
            self._beyond.put(cells[beyond], rows[beyond])
            cells, rows = cells[~beyond], rows[~beyond]
        self._written[cells] = True
        self._rows[cells] = rows

    def items(self) -> tuple[Ints, Rows]:
        """Return all cells ever written, ascending, and their rows."""
        cells = np.flatnonzero(self._written)
        rows = self._rows[cells]
        if not len(self._beyond):
            return cells, rows
        cells_beyond, rows_beyond = self._beyond.items()
        return np.concatenate([cells, cells_beyond]), np.concatenate([rows, rows_beyond])

    def __len__(self) -> int:
        return int(self._written.sum()) + len(self._beyond)

    @property
    def nbytes(self) -> int:
        """Return the memory the table takes."""
        beyond = self._beyond.nbytes if len(self._beyond) else 0
        return self._rows.nbytes + self._written.nbytes + beyond


class SparseTable(CellTable):
    """Open addressing with linear probing, a whole batch at a time.

    `_store` holds one record per cell, in order of arrival: its id, then its row, so that a look-up
    finds id and counts in one cache line. Record 0 is the initial row, which absent cells read.
    `_slots` maps a hash to a record; it is kept at most a quarter full, so most cells are found at
    the first probe, and the cost of a batch hardly grows with the number of cells.
    """

    _FIRST_SLOTS = 1 << 10
    _FIBONACCI = np.uint64(0x9E3779B97F4A7C15)

    def __init__(
        self, width: int, dtype: DTypeLike = np.int64, initial: Sequence[float] | None = None
    ) -> None:
        super().__init__(width, dtype, initial)
        self._store: Ints = np.empty((64, width + 1), np.int64)
        self._store[0, 0] = -1
        self._view(self._store)[0] = self.initial
        self._used = 1
        self._slots = np.zeros(self._FIRST_SLOTS, np.int32)

    def _view(self, store: Ints) -> Rows:
        return store[:, 1:].view(self.dtype)

    def _hash(self, cells: Ints) -> Ints:
        bits = np.uint64(64 - (len(self._slots).bit_length() - 1))
        return ((cells.view(np.uint64) * self._FIBONACCI) >> bits).view(np.int64)

    def _find(self, cells: Ints) -> tuple[NDArray[np.int32], Ints]:
        """Return each cell's place, 0 where absent, and the gathered records."""
        cells = np.ascontiguousarray(cells, np.int64)
        slots = self._hash(cells)
        places = self._slots.take(slots)
        records = self._store.take(places, axis=0)
        displaced = np.flatnonzero((records[:, 0] != cells) & (places != 0))
        mask = len(self._slots) - 1
        while displaced.size:
            slots[displaced] = (slots[displaced] + 1) & mask
            places[displaced] = self._slots[slots[displaced]]
            records[displaced] = self._store[places[displaced]]
            displaced = displaced[
                (records[displaced, 0] != cells[displaced]) & (places[displaced] != 0)
            ]
        return places, records

    def rows(self, cells: Ints) -> Rows:
        """Return a copy of the rows of `cells`, (n, width)."""
        return self._view(self._find(cells)[1])

    def claim(self, cells: Ints) -> Ints:
        """Return each cell's place, creating new ones; valid for `bump` until the next claim."""
        places, _ = self._find(cells)
        absent = places == 0
        if absent.any():
            self._insert(np.unique(cells[absent]))
            places[absent] = self._find(cells[absent])[0]
        return places.astype(np.int64)

    def _insert(self, cells: Ints) -> None:
        """Append records for distinct new cells, whose rows start as the initial row."""
        first, self._used = self._used, self._used + len(cells)
        if self._used > len(self._store):
            # Records grow by half, which bounds both the copying and the slack.
            larger = np.empty(
                (max(self._used, len(self._store) * 3 // 2), self.width + 1), np.int64
            )
            larger[:first] = self._store[:first]
            self._store = larger
        self._store[first : self._used, 0] = cells
        self._view(self._store)[first : self._used] = self.initial
        if self._used * 4 > len(self._slots):
            size = 1 << (self._used * 4 - 1).bit_length()
            self._slots = np.zeros(size, np.int32)
            first = 1
        self._link(np.arange(first, self._used, dtype=np.int32))

    def _link(self, places: NDArray[np.int32]) -> None:
        slots = self._hash(np.ascontiguousarray(self._store[places, 0]))
        mask = len(self._slots) - 1
        while places.size:
            free = self._slots[slots] == 0
            self._slots[slots[free]] = places[free]
            # Of several cells that wrote to one free slot the last stays; the others go on.
            homeless = self._slots[slots] != places
            places, slots = places[homeless], (slots[homeless] + 1) & mask

    def bump(self, places: Ints, columns: Ints | int, amounts: Rows | int) -> None:
        """Add one amount to one column of each place; a place may occur many times."""
        flat = self._store.reshape(-1).view(self.dtype)
        np.add.at(flat, places * (self.width + 1) + 1 + columns, amounts)

    def put(self, cells: Ints, rows: Rows) -> None:
        """Overwrite the rows of distinct `cells`."""
        places = self.claim(cells)
        self._view(self._store)[places] = rows

    def items(self) -> tuple[Ints, Rows]:
        """Return all cells ever written, ascending, and their rows."""
        records = self._store[1 : self._used]
        records = records[np.argsort(records[:, 0])]
        return records[:, 0].copy(), self._view(records).copy()

    def __len__(self) -> int:
        return self._used - 1

    @property
    def nbytes(self) -> int:
        """Return the memory the table takes."""
        return self._store.nbytes + self._slots.nbytes

    @staticmethod
    def most_bytes_per_cell(width: int) -> int:
        """Return the memory that a cell of a large table can take at most, slack included."""
        record, slots = 8 * (width + 1), 8
        return record * 3 // 2 + 4 * slots


def table_for(
    cells: int | None,
    width: int,
    dtype: DTypeLike = np.int64,
    initial: Sequence[float] | None = None,
) -> CellTable:
    """Return a dense table for up to DENSE_LIMIT cells, a sparse one for more or unknown (None)."""
    if cells is not None and cells <= DENSE_LIMIT:
        return DenseTable(cells, width, dtype, initial)
    return SparseTable(width, dtype, initial)
