"""A table of opaque entries: bytes by key, for pending joins and for models.

All keys are in memory, so that looking up a missing key costs nothing and the size is exact.
Values are in memory while they are not yet in RocksDB, and after that up to `cache_bytes`, the
least recently used dropped first; the others are read from RocksDB.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from streams.engine.state.journal import JournalTable
from streams.engine.state.store import Store
from streams.engine.state.table import Change

_OVERHEAD = 150
"""Python's approximate overhead for a key, a value and their dictionary slots, in bytes."""


class EntriesTable(JournalTable):
    """Maps a key to a value, both bytes."""

    def __init__(
        self,
        name: str,
        version: int = 1,
        *,
        cache_bytes: int = 256 << 20,
        shared: bool = False,
        secret: bool = False,
        erasing: bool = False,
    ) -> None:
        self._limit = cache_bytes
        super().__init__(name, version, shared=shared, secret=secret, erasing=erasing)

    def _clear(self) -> None:
        super()._clear()
        self._keys: dict[bytes, None] = {}
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._cached = 0

    def load(self, store: Store) -> None:
        """Start from what RocksDB holds: load its keys now, its values on demand."""
        super().load(store)
        self._keys = dict.fromkeys(store.keys(self.name))

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None if there is none."""
        if key not in self._keys:
            return None
        for layer in (self._dirty, self._leaving):
            if key in layer:
                return layer[key]
        return self._recall(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of `keys` in their order, None where there is none."""
        stored, dirty, leaving, cache = self._keys, self._dirty, self._leaving, self._cache
        away = [
            key
            for key in keys
            if key in stored and key not in cache and key not in dirty and key not in leaving
        ]
        if len(away) > 1 and self._store is not None:
            for key, value in zip(away, self._store.get_many(self.name, away), strict=True):
                if value is not None:
                    self._remember(key, value)
        return [self.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._keys[key] = None
        super().put(key, value)

    def delete(self, key: bytes) -> None:
        """Remove a key; nothing happens if it is not there."""
        if key in self._keys:
            del self._keys[key]
            super().delete(key)
            self._forget(key)

    def put_many(self, pairs: Iterable[Change]) -> None:
        """Set many values; None removes a key."""
        for key, value in pairs:
            if value is None:
                self.delete(key)
            else:
                self.put(key, value)

    def keys(self) -> Iterator[bytes]:
        """Return all keys, in no particular order."""
        return iter(self._keys)

    def settle(self) -> None:
        """Trim the values that are now in RocksDB to the size of the cache."""
        for key, value in self._leaving.items():
            if value is not None and key in self._keys and key not in self._dirty:
                self._remember(key, value)
        super().settle()

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Return roughly how much memory the table takes."""
        return self._cached + len(self._keys) * _OVERHEAD + super().nbytes

    def _recall(self, key: bytes) -> bytes | None:
        value = self._cache.get(key)
        if value is not None:
            self._cache.move_to_end(key)
        elif self._store is not None:
            value = self._store.get(self.name, key)
            if value is not None:
                self._remember(key, value)
        return value

    def _remember(self, key: bytes, value: bytes) -> None:
        self._forget(key)
        self._cache[key] = value
        self._cached += len(value) + _OVERHEAD
        while self._cached > self._limit:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped) + _OVERHEAD

    def _forget(self, key: bytes) -> None:
        value = self._cache.pop(key, None)
        if value is not None:
            self._cached -= len(value) + _OVERHEAD
