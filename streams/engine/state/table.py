"""What every table of a task offers to the commit and to the restore.

A table is read and written in memory. `drain` hands over what changed since the last drain, as the
bytes that go to the changelog and to RocksDB; `settle` says that those bytes are in RocksDB now.
Between the two a table keeps whatever it cannot read back from RocksDB yet.
"""

import re
from abc import ABC, abstractmethod
from typing import TypeAlias

from settings.errors import HbError
from streams.engine.state.store import Store

Change: TypeAlias = tuple[bytes, bytes | None]
"""A key and its new value; None deletes."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class StateError(HbError):
    """State on disk or in a changelog cannot be used."""


class Table(ABC):
    """One named table of a task's state.

    A `shared` table is followed by other workers (see `streams.engine.changelogs.replica`): its
    changes travel on a changelog of their own, so that followers do not read what only one
    partition needs.
    """

    def __init__(self, name: str, *, shared: bool = False) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a table's name is a short lower-case word, not {name!r}")
        self.name = name
        self.shared = shared
        self.prefix = name.encode() + b"/"

    @property
    @abstractmethod
    def layout(self) -> str:
        """Return what a reader must know to understand the stored bytes."""

    @abstractmethod
    def load(self, store: Store) -> None:
        """Start from what RocksDB holds."""

    @property
    @abstractmethod
    def dirty(self) -> bool:
        """Tell whether anything changed since the last drain."""

    @abstractmethod
    def drain(self) -> list[Change]:
        """Return the changes since the last drain."""

    @abstractmethod
    def settle(self) -> None:
        """Note that what the last drain returned is now in RocksDB."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of keys."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return roughly how much memory the table takes."""


def split_key(key: bytes) -> tuple[str, bytes]:
    """Split a changelog key into the table's name and the table's own key."""
    name, _, rest = key.partition(b"/")
    return name.decode("ascii"), rest
