"""RocksDB under the tables of one task: one folder per task, one column family per table.

Everything that belongs together is written together: a `WriteBatch` holds the changes of all
tables, the changelog offsets up to which they reach, the input positions, and the origin of the
state (`streams.engine.changelogs.origin`). So a folder always knows exactly what it holds, and a
restart reads only the changelog after those offsets.

A folder is only a copy of what the changelogs hold. One that is damaged is renamed, never deleted,
and the state is restored into a new one. RocksDB detects most damage but does not always raise: a
scan that meets a damaged block ends early, without an error, unless its status is read. What
RocksDB does not detect at all is caught by `streams.engine.state.generations`.

A folder is locked by the process that has it open. Where several workers on one machine share a
state folder, a task takes the first of its numbered folders that is free, so that a hung worker
never blocks the one that takes over.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import orjson
from rocksdict import (
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
)

from settings.errors import HbError
from streams.clock import wall
from streams.engine.state.generations import Span, complete, is_mark, mark, newest_log, unmark

FORMAT = 2
"""The version of the folder itself: which column families there are and what `_META` holds. 2 has
the marks of generations in every family, which earlier versions would take for rows."""
_READABLE = (b"1", b"2")

MAX_FOLDERS = 16
MAX_ASIDE = 100
"""Folders of one task that may be set aside: a disk that damages more than this needs a look."""

SET_ASIDE = "it has been renamed to"
"""What the log says of each of them, so that they can be counted."""

_FRESH = Span(1, 0, 1)
_META = "default"
_FORMAT_KEY = b"format"
_OFFSETS_KEY = b"offsets"
_POSITIONS_KEY = b"positions"
_LAYOUT_KEY = b"layout"
_ORIGIN_KEY = b"origin"
_WRITTEN_KEY = b"written"
_GENERATIONS_KEY = b"generations"
_UNSCRUBBED_KEY = b"unscrubbed"

# All RocksDB errors have the same class; the text starts with the kind of error.
_TAKEN = re.compile(r"IO error: (While lock file: |lock hold by current process)")
_DAMAGED = re.compile(
    r"(Corruption|NotFound|Not implemented|Invalid argument): "
    r"|IO error: (No such file or directory|.*Input/output error)"
)
_HEADS = re.compile(r"^((Corruption|NotFound|Not implemented|Invalid argument|IO error): )+")
_GIST = re.compile(r": |  | in /|\n|/")
"""Ends the first clause of an error: the rest may contain keys, and paths we know anyway."""
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class StoreError(HbError):
    """A state folder cannot be opened or written."""


class DamagedError(StoreError):
    """A state folder does not hold what was written to it; closing the store sets it aside."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(f"the state folder {folder} is damaged: {what}")
        self.what = what


class _TakenError(StoreError):
    """Another process has the folder open."""


class Store:
    """The stored state of one task.

    A row in one of the tables `erasing` says that something was erased, and calls for a `scrub`.
    """

    def __init__(self, folder: Path, tables: Iterable[str], erasing: Iterable[str] = ()) -> None:
        self.folder = folder
        self._tables = list(tables)
        self._erasing = frozenset(erasing)
        self._span, self._logfile = _FRESH, ""
        self._open()

    def _open(self) -> None:
        self._damage: str | None = None
        self._db = _open(self.folder, self._tables)
        self._families = {name: self._db.get_column_family(name) for name in self._tables}
        self._handles = {name: self._db.get_column_family_handle(name) for name in self._tables}
        try:
            self._read(self._check_format)
            self._read(self._check_generations)
            self.unscrubbed = self._load(_UNSCRUBBED_KEY).get("is", False)
            """Whether its files may still hold what was erased."""
        except StoreError:
            self.close()
            raise

    # What it holds.

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

    @property
    def origin(self) -> dict[str, Any]:
        """Return the origin of the state; empty if it was never recorded."""
        return self._load(_ORIGIN_KEY)

    @property
    def written(self) -> int | None:
        """Return when it was last written, in milliseconds; None if that was never recorded."""
        return self._load(_WRITTEN_KEY).get("at")

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a stored value."""
        return cast("bytes | None", self._read(lambda: self._families[table].get(key)))

    def get_many(self, table: str, keys: list[bytes]) -> list[bytes | None]:
        """Return stored values in the order of `keys`."""
        asked = cast("list[bytes | str | int | float | bool]", keys)
        return cast("list[bytes | None]", self._read(lambda: self._families[table].get(asked)))

    def keys(self, table: str) -> Iterator[bytes]:
        """Return all keys of a table, ascending."""
        rows = self._families[table].iter()
        return self._scan(rows, lambda: cast("bytes", rows.key()))

    def items(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys and values of a table, ascending by key."""
        rows = self._families[table].iter()
        return self._scan(rows, lambda: cast("tuple[bytes, bytes]", (rows.key(), rows.value())))

    def _scan(self, rows: Any, row: Callable[[], _Result]) -> Iterator[_Result]:
        rows.seek_to_first()
        while rows.valid():
            if not is_mark(rows.key()):
                yield row()
            rows.next()
        # An iterator that is no longer valid is at the end, or at a block it cannot read.
        self._read(rows.status)

    # Writing.

    def write(
        self,
        changes: Mapping[str, Iterable[tuple[bytes, bytes | None]]],
        *,
        offsets: Mapping[str, int],
        positions: Mapping[str, int],
        layout: Mapping[str, str],
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the changes of all tables with their offsets and positions, all or nothing."""
        batch = WriteBatch(raw_mode=True)
        for name, pairs in changes.items():
            if _fill(batch, self._handles[name], pairs) and name in self._erasing:
                # In the same batch, so that a worker killed now finds it when it comes back.
                self.unscrubbed = True
                batch.put(_UNSCRUBBED_KEY, orjson.dumps({"is": True}))
        batch.put(_OFFSETS_KEY, orjson.dumps(dict(offsets)))
        batch.put(_POSITIONS_KEY, orjson.dumps(dict(positions)))
        batch.put(_LAYOUT_KEY, orjson.dumps(dict(layout)))
        if origin is not None:
            batch.put(_ORIGIN_KEY, orjson.dumps(dict(origin)))
        batch.put(_WRITTEN_KEY, orjson.dumps({"at": wall()}))
        self._write(batch)
        if newest_log(self.folder) != self._logfile:
            self._begin_generation()

    def _write(self, batch: WriteBatch) -> None:
        try:
            self._db.write(batch)
        except Exception as error:
            raise self._noted(_explained(self.folder, error, "write")) from error

    def _begin_generation(self, *, opening: bool = False) -> None:
        """Mark the current log file; an opening also drops marks that are no longer needed."""
        self._logfile = newest_log(self.folder)
        batch = WriteBatch(raw_mode=True)
        first, last, opened = self._span
        number = last + 1
        if opening:
            unmark(batch, self._handles, first, opened)
            first, opened = opened, number
        self._span = Span(first, number, opened)
        mark(batch, self._handles, number)
        spans = {name: list(self._span) for name in self._handles}
        batch.put(_GENERATIONS_KEY, orjson.dumps(spans))
        self._write(batch)

    def scrub(self) -> None:
        """Rewrite the files, so that what was deleted or replaced is in none of them.

        The manifest names the first and the last key of each file, also of those that the rewriting
        has replaced, until it is written again: with the next flush, here that of the last line.
        """
        all_levels = CompactOptions()
        all_levels.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        try:
            for family in (self._db, *self._families.values()):
                family.flush()
            for family in self._families.values():
                family.compact_range(None, None, all_levels)
            self._db.put(_UNSCRUBBED_KEY, orjson.dumps({"is": False}))
            self._db.flush()
        except Exception as error:
            raise self._noted(_explained(self.folder, error, "write")) from error
        self.unscrubbed = False

    # Closing.

    def replace(self, kind: str) -> None:
        """Set the folder aside and start with an empty one: the changelogs hold everything."""
        self._release()
        set_aside(self.folder, kind)
        self._open()

    def close(self) -> None:
        """Release the folder; what is not flushed is in the changelog. A damaged one is renamed.

        After that the next opening finds no folder, and restores everything from the changelogs.
        """
        self._release()
        if self._damage is not None:
            _say_damaged(self.folder, self._damage, set_aside(self.folder, "damaged"))

    def _release(self) -> None:
        self._handles.clear()
        self._families.clear()
        try:
            self._db.close()
        except Exception as error:  # noqa: BLE001  # RocksDB's errors have no class of their own
            if self._damage is None:
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

    # Checks.

    def _load(self, key: bytes) -> dict[str, Any]:
        raw = self._read(lambda: self._db.get(key))
        return {} if raw is None else dict(orjson.loads(cast("bytes", raw)))

    def _read(self, read: Callable[[], _Result]) -> _Result:
        """Return what `read` returns; record any damage it meets."""
        try:
            return read()
        except StoreError as error:
            raise self._noted(error) from error.__cause__
        except Exception as error:
            raise self._noted(_explained(self.folder, error, "read")) from error

    def _noted(self, error: StoreError) -> StoreError:
        """Remember damage for `close`, and return the error."""
        if isinstance(error, DamagedError):
            self._damage = error.what
        return error

    def _check_format(self) -> None:
        raw = cast("bytes | None", self._db.get(_FORMAT_KEY))
        if raw is not None and raw not in _READABLE:
            raise StoreError(
                f"the state folder {self.folder} has format {raw.decode('ascii', 'replace')} and"
                f" this version reads {FORMAT}; move the folder away (it is restored from the"
                " broker), or run the version that wrote it"
            )
        self._db.put(_FORMAT_KEY, b"%d" % FORMAT)

    def _check_generations(self) -> None:
        """Refuse a folder that lost writes from the middle, and start a generation."""
        spans = {name: Span(*span) for name, span in self._load(_GENERATIONS_KEY).items()}
        for name, span in spans.items():
            if name in self._families and not complete(self._families[name], span):
                raise DamagedError(self.folder, "writes are missing from its history")
        self._span = next(iter(spans.values()), _FRESH)
        if not self._handles.keys() <= spans.keys():  # a new table has no earlier marks
            self._span = Span(self._span.last + 1, self._span.last, self._span.last + 1)
        self._begin_generation(opening=True)


def open_free(
    parent: Path,
    tables: Iterable[str],
    changelog: str | None = None,
    erasing: Iterable[str] = (),
) -> Store:
    """Open the first folder of a task that is free, renaming those that turn out to be damaged.

    A folder whose state belongs to a changelog of another name is skipped: settings with another
    prefix may use the same place.
    """
    names, marked = list(tables), frozenset(erasing)
    for number in range(MAX_FOLDERS):
        folder = parent / str(number)
        try:
            store = _open_sound(folder, names, marked)
        except _TakenError:
            _log.info("state folder %s is in use; trying the next one", folder)
            continue
        offsets = store.offsets
        if changelog is None or not offsets or changelog in offsets:
            return store
        store.close()
        _log.info("state folder %s belongs to other topics; trying the next one", folder)
    raise StoreError(
        f"all {MAX_FOLDERS} state folders under {parent} are in use by other processes"
    )


def _open_sound(folder: Path, tables: list[str], erasing: frozenset[str]) -> Store:
    try:
        return Store(folder, tables, erasing)
    except DamagedError as error:
        if folder.exists():  # a store that was open has set it aside itself
            _say_damaged(folder, error.what, set_aside(folder, "damaged"))
    return Store(folder, tables, erasing)


def set_aside(folder: Path, kind: str) -> Path:
    """Rename a folder that is not open, and return its new name; nothing is ever deleted."""
    base = f"{folder.name}.{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    names = (base if again == 1 else f"{base}-{again}" for again in count(1))
    try:
        present = {path.name for path in folder.parent.iterdir()}
        if sum("-" in name for name in present) < MAX_ASIDE:
            free = next(name for name in names if name not in present)
            return folder.rename(folder.with_name(free))
    except OSError as error:
        raise StoreError(f"cannot rename the state folder {folder}: {error.strerror}") from error
    raise StoreError(
        f"{MAX_ASIDE} state folders in {folder.parent} have been set aside; check the disk, and"
        " move them away"
    )


def _say_damaged(folder: Path, damage: str, aside: Path) -> None:
    _log.error(
        "the state folder %s is damaged (%s); %s %s, and the state is being restored from the"
        " changelogs",
        folder,
        damage,
        SET_ASIDE,
        aside.name,
    )


def _explained(folder: Path, error: Exception, doing: str) -> StoreError:
    """Return what an error of RocksDB means: a locked folder, damage, or another cause."""
    text = str(error)
    if _TAKEN.match(text):
        return _TakenError(f"the state folder {folder} is in use by another process")
    if _DAMAGED.match(text):
        return DamagedError(folder, _GIST.split(_HEADS.sub("", text))[0][:80].rstrip())
    return StoreError(f"cannot {doing} the state folder {folder}: {text}; is the disk full?")


def _open(folder: Path, tables: list[str]) -> Rdict:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        current = (folder / "CURRENT").exists()
        existing = Rdict.list_cf(str(folder), _options()) if current else []
        # For all tables together, or each has as much. Not for several stores: blocks would outlive
        # the closing of a folder, and damage to it would not be seen when it is opened again.
        blocks = Cache(16 << 20)
        families = {name: _options(blocks) for name in {_META, *tables, *existing}}
        if current or not any(folder.glob("*.sst")):
            return Rdict(str(folder), _options(blocks), column_families=families)
    except Exception as error:
        raise _explained(folder, error, "open") from error
    # RocksDB would start a new database, and delete the table files of the old one.
    raise DamagedError(folder, "its file CURRENT is missing")


def _options(cache: Cache | None = None) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    # After a power cut the log may end in the middle of a write; what precedes it is intact.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_keep_log_file_num(2)
    # What is searched for in the files must be found there; and rows are small, or encrypted.
    options.set_compression_type(DBCompressionType.none())
    # Rewritten with every flush, so that no key of a former file stays in it.
    options.set_max_manifest_file_size(1)
    # What is in no table file yet: for all tables of the task together, or each fills up by itself.
    options.set_db_write_buffer_size(16 << 20)
    options.set_write_buffer_size(16 << 20)
    options.set_max_total_wal_size(64 << 20)
    blocks = BlockBasedOptions()
    if cache is not None:
        blocks.set_block_cache(cache)
    blocks.set_bloom_filter(10, block_based=False)
    options.set_block_based_table_factory(blocks)
    return options


def _fill(batch: WriteBatch, handle: Any, pairs: Iterable[tuple[bytes, bytes | None]]) -> bool:
    """Add the changes of a table to a batch; tell whether there were any."""
    before = batch.len()
    put, delete = batch.put, batch.delete
    for key, value in pairs:
        if value is None:
            delete(key, handle)
        else:
            put(key, value, handle)
    return batch.len() > before
