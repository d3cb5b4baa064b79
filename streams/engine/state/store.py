"""RocksDB under the tables of one task: one folder per task, one column family per table.

Everything that belongs together is written together: a `WriteBatch` holds the changes of all
tables, the changelog offsets up to which they reach, and the input positions. So a folder always
says exactly what it holds, and a restart reads only the changelog after those offsets.

A folder is locked by the process that has it open. Where several workers of one machine share a
state folder, a task takes the first of its numbered folders that is free, so that a worker that
hangs never blocks the one that takes over.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import orjson
from rocksdict import BlockBasedOptions, DBRecoveryMode, Options, Rdict, WriteBatch

from settings.errors import HbError

FORMAT = 1
"""The version of the folder itself: which column families there are and what `_META` holds."""

MAX_FOLDERS = 16
_META = "default"
_FORMAT_KEY, _OFFSETS_KEY, _POSITIONS_KEY, _LAYOUT_KEY = (
    b"format",
    b"offsets",
    b"positions",
    b"layout",
)
_log = logging.getLogger(__name__)


class StoreError(HbError):
    """A state folder cannot be opened or written."""


class Store:
    """The stored state of one task."""

    def __init__(self, folder: Path, tables: Iterable[str]) -> None:
        self.folder = folder
        self._tables = list(tables)
        self._open()

    def _open(self) -> None:
        self._db = _open(self.folder, self._tables)
        self._families = {name: self._db.get_column_family(name) for name in self._tables}
        self._handles = {name: self._db.get_column_family_handle(name) for name in self._tables}
        self._check_format()

    @property
    def offsets(self) -> dict[str, int]:
        """Return, per changelog, the offset from which a restore has to read."""
        return self._load(_OFFSETS_KEY)

    @property
    def positions(self) -> dict[str, int]:
        """Return, per input topic, the offset of the first record not yet in this state."""
        return self._load(_POSITIONS_KEY)

    @property
    def layout(self) -> dict[str, str]:
        """Return the layout of each table at the last write; empty if there was none."""
        return self._load(_LAYOUT_KEY)

    def write(
        self,
        changes: Mapping[str, Iterable[tuple[bytes, bytes | None]]],
        *,
        offsets: Mapping[str, int],
        positions: Mapping[str, int],
        layout: Mapping[str, str],
    ) -> None:
        """Write the changes of all tables and what they stand for, all or nothing."""
        batch = WriteBatch(raw_mode=True)
        for name, pairs in changes.items():
            _fill(batch, self._handles[name], pairs)
        batch.put(_OFFSETS_KEY, orjson.dumps(dict(offsets)))
        batch.put(_POSITIONS_KEY, orjson.dumps(dict(positions)))
        batch.put(_LAYOUT_KEY, orjson.dumps(dict(layout)))
        try:
            self._db.write(batch)
        except Exception as error:
            raise StoreError(
                f"cannot write the state folder {self.folder}: {error}; is the disk full?"
            ) from error

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a stored value."""
        value: bytes | None = self._families[table].get(key)
        return value

    def get_many(self, table: str, keys: list[bytes]) -> list[bytes | None]:
        """Return stored values in the order of `keys`."""
        found = self._families[table].get(cast("list[bytes | str | int | float | bool]", keys))
        return cast("list[bytes | None]", found)

    def keys(self, table: str) -> Iterator[bytes]:
        """Return all keys of a table, ascending."""
        return self._families[table].keys()  # type: ignore[return-value]  # bytes in raw mode

    def items(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys and values of a table, ascending by key."""
        return self._families[table].items()  # type: ignore[return-value]  # bytes in raw mode

    def wipe(self) -> None:
        """Start from nothing: the changelog holds everything."""
        self.close()
        shutil.rmtree(self.folder)
        self._open()

    def close(self) -> None:
        """Flush and let go of the folder; what is not flushed is in the changelog."""
        self._handles.clear()
        self._families.clear()
        try:
            self._db.close()
        except Exception as error:  # noqa: BLE001  # RocksDB's errors have no class of their own
            _log.warning("the state folder %s was not closed cleanly: %s", self.folder, error)
        finally:
            del self._db  # this frees the lock, whatever happened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _load(self, key: bytes) -> dict[str, Any]:
        raw = self._db.get(key)
        return {} if raw is None else dict(orjson.loads(raw))

    def _check_format(self) -> None:
        raw = self._db.get(_FORMAT_KEY)
        if raw is None:
            self._db.put(_FORMAT_KEY, b"%d" % FORMAT)
        elif raw != b"%d" % FORMAT:
            self.close()
            raise StoreError(
                f"the state folder {self.folder} has format {raw.decode('ascii', 'replace')} and"
                f" this version reads {FORMAT}; delete the folder (it is restored from the broker),"
                " or run the version that wrote it"
            )


def open_free(parent: Path, tables: Iterable[str]) -> Store:
    """Open the first folder of a task that no other process has open."""
    names = list(tables)
    for number in range(MAX_FOLDERS):
        try:
            return Store(parent / str(number), names)
        except _TakenError:
            _log.info("state folder %s is in use; trying the next one", parent / str(number))
    raise StoreError(
        f"all {MAX_FOLDERS} state folders under {parent} are in use by other processes"
    )


class _TakenError(StoreError):
    """Another process has the folder open."""


def _open(folder: Path, tables: list[str]) -> Rdict:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = Rdict.list_cf(str(folder), _options()) if (folder / "CURRENT").exists() else []
        families = {name: _options() for name in {_META, *tables, *known}}
        return Rdict(str(folder), _options(), column_families=families)
    except Exception as error:
        if "lock" in str(error).lower():
            raise _TakenError(f"the state folder {folder} is in use by another process") from error
        raise StoreError(f"cannot open the state folder {folder}: {error}") from error


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    # After a power cut the log may end in the middle of a write; what precedes it is whole.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_keep_log_file_num(2)
    options.set_write_buffer_size(16 << 20)
    options.set_max_total_wal_size(64 << 20)
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, block_based=False)
    options.set_block_based_table_factory(blocks)
    return options


def _fill(batch: WriteBatch, handle: Any, pairs: Iterable[tuple[bytes, bytes | None]]) -> None:
    put, delete = batch.put, batch.delete
    for key, value in pairs:
        if value is None:
            delete(key, handle)
        else:
            put(key, value, handle)
