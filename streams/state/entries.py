"""A table of opaque entries: bytes by key, for what waits (pending joins) and for models.

All keys are in memory, so that a look-up of what is not there costs nothing and the size is exact.
Values are in memory while they are not yet in RocksDB, and after that up to `cache_bytes`, the
least lately used leaving first; the rest is read from RocksDB.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from streams.state.store import Store
from streams.state.table import Change, Table

_OVERHEAD = 150
"""What Python needs for a key, a value and their places in the dictionaries, about, in bytes."""


class EntriesTable(Table):
    """Maps a key to a value, both bytes. `version` names what the values mean."""

    def __init__(
        self, name: str, version: int = 1, *, cache_bytes: int = 256 << 20, shared: bool = False
    ) -> None:
        super().__init__(name, shared=shared)
        self.version = version
        self._limit = cache_bytes
        self._clear()

    def _clear(self) -> None:
        self._store: Store | None = None
        self._keys: dict[bytes, None] = {}
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._cached = 0
        self._dirty: dict[bytes, bytes | None] = {}
        self._leaving: dict[bytes, bytes | None] = {}

    @property
    def layout(self) -> str:
        """Return the version of the values."""
        return f"entries:{self.version}"

    def load(self, store: Store) -> None:
        """Start from what RocksDB holds: its keys now, its values when they are asked for."""
        self._clear()
        self._store = store
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
        known, dirty, leaving, cache = self._keys, self._dirty, self._leaving, self._cache
        away = [
            key
            for key in keys
            if key in known and key not in cache and key not in dirty and key not in leaving
        ]
        if len(away) > 1 and self._store is not None:
            for key, value in zip(away, self._store.get_many(self.name, away), strict=True):
                if value is not None:
                    self._remember(key, value)
        return [self.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._keys[key] = None
        self._dirty[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key; nothing happens if it is not there."""
        if key in self._keys:
            del self._keys[key]
            self._dirty[key] = None
            self._forget(key)

    def put_many(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Set many values."""
        pairs = list(pairs)
        self._dirty.update(pairs)
        self._keys.update((key, None) for key, _ in pairs)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys and values, ascending by key; the table must not change meanwhile."""
        newer = dict(chain(self._leaving.items(), self._dirty.items()))
        stored = () if self._store is None else self._store.items(self.name)
        kept = ((key, value) for key, value in stored if key not in newer)
        changed = sorted((key, value) for key, value in newer.items() if value is not None)
        return heapq.merge(kept, changed)

    def keys(self) -> Iterator[bytes]:
        """Return all keys, in no particular order."""
        return iter(self._keys)

    @property
    def dirty(self) -> bool:
        """Tell whether anything was set or deleted since the last drain."""
        return bool(self._dirty)

    def drain(self) -> list[Change]:
        """Return what was set and deleted since the last drain."""
        self._leaving, self._dirty = self._dirty, {}
        return list(self._leaving.items())

    def settle(self) -> None:
        """Keep of what is in RocksDB now only as much as the cache may hold."""
        for key, value in self._leaving.items():
            if value is not None and key in self._keys and key not in self._dirty:
                self._remember(key, value)
        self._leaving = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Return the memory the table takes, about."""
        unsaved = chain(self._dirty.values(), self._leaving.values())
        return self._cached + len(self._keys) * _OVERHEAD + sum(len(v) for v in unsaved if v)

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
