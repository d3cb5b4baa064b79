"""What every table of a task offers to the commit and to the restore.

A table is read and written in memory. `drain` hands over what changed since the last drain, as the
bytes that go to the changelog and to RocksDB; `settle` says that those bytes are in RocksDB now.
Between the two a table keeps whatever it cannot read back from RocksDB yet.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from learners.errors import LearnerError
from settings.errors import HbError
from streams.engine.state.store import Store

Change: TypeAlias = tuple[bytes, bytes | None]
"""A key and its new value; None deletes."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class StateError(HbError):
    """State on disk or in a changelog cannot be used."""


_UNREADABLE = (
    ArithmeticError, AttributeError, LookupError, LearnerError, TypeError, ValueError,
    msgspec.MsgspecError,
)  # fmt: skip


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Refuse stored bytes that no worker of ours wrote, whatever they do to the code inside.

    Errors of the learners are sentences about the settings. All others are named by their kind
    alone, because their texts may show values.
    """
    try:
        yield
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, LearnerError) else type(error).__name__
        raise StateError(
            f"{source} cannot be read ({reason}): it is damaged, or another program has written to"
            " it; restore it, or use another topics.prefix (hb acls: who may write it)"
        ) from None


class Table(ABC):
    """One named table of a task's state.

    A `shared` table is followed by other workers (see `streams.engine.changelogs.replica`): its
    changes travel on a changelog of their own, so that followers do not read what only one
    partition needs. A `secret` one is followed by workers of the same agent alone: its changelog is
    a third one, which nobody else may read (`streams.kafka.rights`). A row in an `erasing` table
    says that something was erased from the others, and that no file on the disk may keep it.
    """

    def __init__(
        self, name: str, *, shared: bool = False, secret: bool = False, erasing: bool = False
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a table's name is a short lower-case word, not {name!r}")
        self.name = name
        self.shared = shared or secret
        self.secret = secret
        self.erasing = erasing
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
    name, _, row_key = key.partition(b"/")
    return name.decode("ascii"), row_key
