"""The changelogs of one task: how changes are written there, and how the state is read back.

A record's key is the table's name, a slash and the table's key; no value means deleted. One
reserved key in the private changelog holds the input positions, the layout of all tables and the
origin of the state, so that a restore knows where to continue and whether it can read what it
finds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import orjson

from streams.clock import wall
from streams.engine.changelogs.origin import Origin, check_owner, check_topics
from streams.engine.changelogs.signing import Signer
from streams.engine.outbox import LARGEST, Outbox
from streams.engine.state.store import Store
from streams.engine.state.table import Change, StateError, Table, reading, split_key
from streams.kafka.batch import Batch

META_KEY = b"\x00meta"
VERSION = 1
UNKNOWN = Origin()


class Changelogs:
    """Writes the changes of one task to its changelog topics and to its store."""

    def __init__(
        self,
        tables: Sequence[Table],
        store: Store,
        partition: int,
        private: str,
        shared: str,
        *,
        secret: str = "",
        largest: int = LARGEST,
        origin: Origin = UNKNOWN,
        signer: Signer | None = None,
    ) -> None:
        self._largest = largest
        self._signer = signer
        self.origin = origin
        """The origin of everything written from now on; the restore fills in the topic ids."""
        self.partition = partition
        self.store = store
        self.private = private
        self.layout = {table.name: table.layout for table in tables}
        self.topic_of = {
            table.name: secret if table.secret else shared if table.shared else private
            for table in tables
        }
        self.topics = sorted({private, *self.topic_of.values()})
        self._prefixes = {table.name: table.prefix for table in tables}
        self._offsets = {topic: store.offsets.get(topic, 0) for topic in self.topics}

    @property
    def offsets(self) -> dict[str, int]:
        """Return, per changelog, the offset from which a restore has to read."""
        return dict(self._offsets)

    def start_over(self, kind: str) -> None:
        """Set the folder aside, to read the changelogs from their start into a new one."""
        self.store.replace(kind)
        self._offsets = dict.fromkeys(self.topics, 0)

    def check_folder(self) -> None:
        """Refuse a folder whose state does not fit these settings or these topics."""
        source = f"the state folder {self.store.folder}"
        self._check_origin(Origin.parse(self.store.origin), source)
        self.check_layout(self.store.layout, source)

    def check_topics_now(self, ids: Mapping[str, str]) -> None:
        """Refuse to continue if topics were recreated while the task was open."""
        now = replace(self.origin, topics=ids)
        source = f"the state of {self.private}/{self.partition}"
        check_topics(self.origin, now, source, self.store.positions, self.private)

    def _check_origin(self, stored: Origin, source: str) -> None:
        check_owner(stored, self.origin, source)
        check_topics(stored, self.origin, source, self.store.positions, self.private)

    def encode(
        self,
        changes: Mapping[str, list[Change]],
        positions: Mapping[str, int],
        create: Callable[[], Any],
    ) -> dict[str, list[Any]]:
        """Return record batches per changelog topic; the private one ends with the positions."""
        out = Outbox(create, self.partition, "", self._largest)
        now = wall()
        for name, pairs in changes.items():
            prefix = self._prefixes[name]
            keys = [prefix + key for key, _ in pairs]
            self._emit(out, self.topic_of[name], keys, [v for _, v in pairs], now)
        meta = {
            "version": VERSION,
            "layout": self.layout,
            "positions": dict(positions),
            "origin": self.origin.plain(),
        }
        self._emit(out, self.private, [META_KEY], [orjson.dumps(meta)], now)
        return {topic: batches for (topic, _), batches in out.batches.items()}

    def _emit(
        self,
        out: Outbox,
        topic: str,
        keys: Sequence[bytes],
        values: Sequence[bytes | None],
        now: int,
    ) -> None:
        headers = None
        if self._signer is not None:
            signed = self._signer.headers(topic, self.partition, keys, values)
            headers = dict(enumerate(signed))
        out.emit_many(topic, keys, values, [now] * len(keys), headers=headers)

    def store_changes(
        self,
        changes: Mapping[str, Iterable[Change]],
        ends: Mapping[str, int | None],
        positions: Mapping[str, int],
    ) -> None:
        """Write changes that are committed in the changelogs up to `ends` to RocksDB."""
        self._store(changes, ends, positions, self.origin)

    def _store(
        self,
        changes: Mapping[str, Iterable[Change]],
        ends: Mapping[str, int | None],
        positions: Mapping[str, int],
        origin: Origin | None,
    ) -> None:
        for topic, end in ends.items():
            if end is not None and end < self._offsets[topic]:
                raise StateError(
                    f"the changelog {topic} was at {self._offsets[topic]} and is at {end} now: it"
                    " was recreated, or its end was lost, while it was written; restore it, or use"
                    " another topics.prefix"
                )
        self._offsets.update({topic: end for topic, end in ends.items() if end is not None})
        self.store.write(
            changes,
            offsets=self._offsets,
            positions=positions,
            layout=self.layout,
            origin=None if origin is None else origin.plain(),
        )

    def confirm(self) -> None:
        """Record that the folder now holds everything in the changelogs."""
        self._store({}, {}, self.store.positions, None)

    @property
    def signed(self) -> bool:
        """Tell whether the changelog already states its full origin."""
        return Origin.parse(self.store.origin) == self.origin

    def apply(self, batch: Batch) -> None:
        """Write a piece of a changelog that was read back to RocksDB."""
        if self._signer is not None:
            self._signer.check(batch)
        changes: dict[str, dict[bytes, bytes | None]] = {}
        positions, origin = self.store.positions, None
        with reading(f"the changelog {batch.topic}/{self.partition}"):
            for key, value in zip(batch.keys, batch.values, strict=True):
                if key == META_KEY:
                    positions, origin = self.read_meta(value, batch.topic)
                elif key is not None:
                    name, row_key = split_key(key)
                    changes.setdefault(name, {})[row_key] = value
        self.check_names(changes, batch.topic)
        pairs = {name: list(latest.items()) for name, latest in changes.items()}
        self._store(pairs, {batch.topic: batch.next}, positions, origin)

    def read_meta(self, value: bytes | None, source: str) -> tuple[dict[str, int], Origin]:
        """Return positions and origin of a meta record, if its state can be read."""
        meta = orjson.loads(value or b"{}")
        if meta.get("version") != VERSION:
            raise StateError(
                f"the changelog {source} has format {meta.get('version')} and this version reads"
                f" {VERSION}; run the version that wrote it"
            )
        origin = Origin.parse(meta.get("origin", {}))
        self._check_origin(origin, f"the state in {source}")
        layout = msgspec.convert(meta["layout"], dict[str, str])
        self.check_layout(layout, f"the changelog {source}")
        return msgspec.convert(meta["positions"], dict[str, int]), origin

    def check_layout(self, stored: Mapping[str, str], source: str) -> None:
        """Refuse state whose tables this program would misread; new tables may be added."""
        for name, layout in stored.items():
            if self.layout.get(name) != layout:
                raise StateError(
                    f"{source} holds table {name} as {layout}, and this program reads it as"
                    f" {self.layout.get(name, 'nothing')}; run the version and settings that wrote"
                    " it, or start afresh under another application name"
                )

    def check_names(self, names: Iterable[str], source: str) -> None:
        """Refuse a changelog with tables that are not declared."""
        for name in names:
            if name not in self.layout:
                raise StateError(
                    f"the changelog {source} holds a table {name} that is not declared"
                )
