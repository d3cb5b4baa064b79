"""The changelogs of one task: how changes are written there, and how the state is read back.

A record's key is the table's name, a slash and the table's key; no value means deleted. One
reserved key in the private changelog holds the input positions and the layout of all tables, so
that whoever restores knows where to go on and whether it can read what it finds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from streams.clock import wall
from streams.engine.outbox import LARGEST, Outbox
from streams.engine.state.store import Store
from streams.engine.state.table import Change, StateError, Table, split_key
from streams.kafka.batch import Batch

META_KEY = b"\x00meta"
VERSION = 1


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
        largest: int = LARGEST,
    ) -> None:
        self._largest = largest
        self.partition = partition
        self.store = store
        self.private = private
        self.layout = {table.name: table.layout for table in tables}
        self.topic_of = {table.name: shared if table.shared else private for table in tables}
        self.topics = sorted({private, *self.topic_of.values()})
        self._prefixes = {table.name: table.prefix for table in tables}
        self._offsets = {topic: store.offsets.get(topic, 0) for topic in self.topics}

    @property
    def offsets(self) -> dict[str, int]:
        """Return, per changelog, the offset from which a restore has to read."""
        return dict(self._offsets)

    def forget(self) -> None:
        """Empty the store, to read the changelogs from their start."""
        self.store.wipe()
        self._offsets = dict.fromkeys(self.topics, 0)

    def skip_to(self, topic: str, start: int) -> None:
        """Take note that a changelog begins at `start`: what was before it is superseded."""
        self._offsets[topic] = max(self._offsets[topic], start)

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
            out.emit_many(self.topic_of[name], keys, [v for _, v in pairs], [now] * len(pairs))
        meta = {"version": VERSION, "layout": self.layout, "positions": dict(positions)}
        out.emit_many(self.private, [META_KEY], [orjson.dumps(meta)], [now])
        return {topic: batches for (topic, _), batches in out.batches.items()}

    def store_changes(
        self,
        changes: Mapping[str, Iterable[Change]],
        ends: Mapping[str, int | None],
        positions: Mapping[str, int],
    ) -> None:
        """Write changes that are committed in the changelogs up to `ends` to RocksDB."""
        self._offsets.update({topic: end for topic, end in ends.items() if end is not None})
        self.store.write(changes, offsets=self._offsets, positions=positions, layout=self.layout)

    def apply(self, batch: Batch) -> None:
        """Write a piece of a changelog that was read back to RocksDB."""
        changes: dict[str, dict[bytes, bytes | None]] = {}
        positions = self.store.positions
        for key, value in zip(batch.keys, batch.values, strict=True):
            if key == META_KEY:
                positions = self.read_meta(value, batch.topic)
            elif key is not None:
                name, rest = split_key(key)
                changes.setdefault(name, {})[rest] = value
        self.check_names(changes, batch.topic)
        pairs = {name: list(latest.items()) for name, latest in changes.items()}
        self.store_changes(pairs, {batch.topic: batch.next}, positions)

    def read_meta(self, value: bytes | None, source: str) -> dict[str, int]:
        """Return the positions of a meta record after checking that its state can be read."""
        meta = orjson.loads(value or b"{}")
        if meta.get("version") != VERSION:
            raise StateError(
                f"the changelog {source} has format {meta.get('version')} and this version reads"
                f" {VERSION}; run the version that wrote it"
            )
        self.check_layout(meta["layout"], f"the changelog {source}")
        positions: dict[str, int] = meta["positions"]
        return positions

    def check_layout(self, found: Mapping[str, str], source: str) -> None:
        """Refuse state whose tables this program would misread; new tables may be added."""
        for name, layout in found.items():
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
