"""A table whose values are kept by its owner: only changes pass through it.

For data that a processor holds in its own form, such as a ledger: a second copy would double the
memory and cost time at every change.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain

from streams.engine.state.store import Store
from streams.engine.state.table import Change, Table


class JournalTable(Table):
    """Carries changes of bytes by key to the changelog and to RocksDB.

    `version` names what the values mean.
    """

    def __init__(
        self,
        name: str,
        version: int = 1,
        *,
        shared: bool = False,
        secret: bool = False,
        erasing: bool = False,
    ) -> None:
        super().__init__(name, shared=shared, secret=secret, erasing=erasing)
        self.version = version
        self._clear()

    def _clear(self) -> None:
        self._store: Store | None = None
        self._dirty: dict[bytes, bytes | None] = {}
        self._leaving: dict[bytes, bytes | None] = {}

    @property
    def layout(self) -> str:
        """Return the version of the values."""
        return f"entries:{self.version}"

    def load(self, store: Store) -> None:
        """Start from what RocksDB holds."""
        self._clear()
        self._store = store

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._dirty[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self._dirty[key] = None

    def put_many(self, pairs: Iterable[Change]) -> None:
        """Set many values; None removes a key."""
        self._dirty.update(pairs)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys and values, ascending by key; the table must not change meanwhile."""
        newer = dict(chain(self._leaving.items(), self._dirty.items()))
        stored = () if self._store is None else self._store.items(self.name)
        unchanged = ((key, value) for key, value in stored if key not in newer)
        changed = sorted((key, value) for key, value in newer.items() if value is not None)
        return heapq.merge(unchanged, changed)

    @property
    def dirty(self) -> bool:
        """Tell whether anything was set or deleted since the last drain."""
        return bool(self._dirty)

    def drain(self) -> list[Change]:
        """Return what was set and deleted since the last drain."""
        self._leaving, self._dirty = self._dirty, {}
        return list(self._leaving.items())

    def settle(self) -> None:
        """Drop what is now in RocksDB."""
        self._leaving = {}

    def __len__(self) -> int:
        """Return the number of keys, by counting them."""
        return sum(1 for _ in self.items())

    @property
    def nbytes(self) -> int:
        """Return roughly how much memory the changes take that are not in RocksDB yet."""
        return sum(len(v) for v in chain(self._dirty.values(), self._leaving.values()) if v)
