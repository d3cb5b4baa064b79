"""A persistent table of counts per cell: the learners' table plus a record of touched cells.

A stored key is the cell's id, a stored value the cell's row; both as 8-byte numbers, the key
big-endian, so that RocksDB's order is the order of the cells.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from learners.arrays.tables import CellTable, Rows, table_for
from learners.arrays.types import Ints
from streams.engine.state.store import Store
from streams.engine.state.table import Change, Table

_KEY = np.dtype(">i8")


class CountsTable(Table, CellTable):
    """Maps a cell id to a row of `width` numbers; holds all of them in memory.

    `cells` is the number of possible ids, or None if it is large or unknown. If `adds` is False,
    rows of different partitions must not be added, and followers keep no sum of them.
    """

    def __init__(
        self,
        name: str,
        width: int,
        *,
        cells: int | None = None,
        dtype: DTypeLike = np.int64,
        initial: Sequence[float] | None = None,
        shared: bool = True,
        adds: bool = True,
    ) -> None:
        Table.__init__(self, name, shared=shared)
        CellTable.__init__(self, width, dtype, initial)
        self.adds = adds
        if shared and adds and (self.dtype.kind not in "iu" or self.initial.any()):
            raise ValueError(
                f"table {name} is shared: only integers that start at 0 add up exactly; with"
                " adds=False followers read each partition's rows apart"
            )
        self._cells = cells
        self._table = self.empty()
        self._touched: list[Ints] = []

    def empty(self) -> CellTable:
        """Return an empty table of the same shape that does not track changes."""
        return table_for(self._cells, self.width, self.dtype, self.initial.tolist())

    @property
    def layout(self) -> str:
        """Return the shape of a row."""
        return f"counts:{self.width}:{self.dtype.str}"

    def load(self, store: Store) -> None:
        """Start from what RocksDB holds."""
        pairs = list(store.items(self.name))
        self._table = self.empty()
        self._touched = []
        if pairs:
            self._table.put(*self.decode([key for key, _ in pairs], [value for _, value in pairs]))

    def decode(self, keys: Sequence[bytes], values: Sequence[bytes]) -> tuple[Ints, Rows]:
        """Return the cells and rows of stored keys and values."""
        cells = np.frombuffer(b"".join(keys), _KEY).astype(np.int64)
        rows = np.frombuffer(b"".join(values), self.dtype).reshape(len(cells), self.width)
        return cells, rows

    @property
    def dirty(self) -> bool:
        """Tell whether any cell was touched since the last drain."""
        return bool(self._touched)

    def drain(self) -> list[Change]:
        """Return the rows of the cells touched since the last drain."""
        if not self._touched:
            return []
        cells = np.unique(np.concatenate(self._touched))
        self._touched = []
        keys = cells.astype(_KEY).tobytes()
        rows = np.ascontiguousarray(self._table.rows(cells)).tobytes()
        size = self.width * self.dtype.itemsize
        return [
            (keys[8 * i : 8 * i + 8], rows[size * i : size * i + size]) for i in range(len(cells))
        ]

    def settle(self) -> None:
        """Do nothing: reads never go to RocksDB."""

    def rows(self, cells: Ints) -> Rows:
        """Return a copy of the rows of `cells`, (n, width)."""
        return self._table.rows(cells)

    def claim(self, cells: Ints) -> Ints:
        """Return a place for each cell, created if new; valid for `bump` until the next claim."""
        self._touched.append(np.array(cells, np.int64))
        return self._table.claim(cells)

    def bump(self, places: Ints, columns: Ints | int, amounts: Rows | int) -> None:
        """Add one amount to one column of each place; a place may occur many times."""
        self._table.bump(places, columns, amounts)

    def put(self, cells: Ints, rows: Rows) -> None:
        """Overwrite the rows of distinct `cells`."""
        self._touched.append(np.array(cells, np.int64))
        self._table.put(cells, rows)

    def items(self) -> tuple[Ints, Rows]:
        """Return all cells ever written, ascending, and their rows."""
        return self._table.items()

    def __len__(self) -> int:
        """Return how many cells were ever written."""
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Return the memory the table takes."""
        return self._table.nbytes
