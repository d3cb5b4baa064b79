"""The agents' state as seen from outside: the latest value of each key in the wanted tables.

`agents.monitor.state_reader` fills it from the changelogs, `agents.monitor.local_state` with what
the worker's own tasks have committed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import orjson

from learners.arrays.types import Ints
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.state.table import split_key
from streams.kafka.batch import Batch


class StateView:
    """The latest values of the wanted tables, by topic, table and partition."""

    def __init__(self, tables_of: Mapping[str, Collection[str]]) -> None:
        """`tables_of` names the tables to keep of each changelog topic."""
        self._tables_of = {topic: frozenset(tables) for topic, tables in tables_of.items()}
        self._rows: dict[tuple[str, str], dict[int, dict[bytes, bytes]]] = {}
        self.positions: dict[tuple[str, int], dict[str, int]] = {}

    @property
    def topics(self) -> list[str]:
        """Return the changelog topics that it is filled from."""
        return list(self._tables_of)

    def take(self, records: Iterable[Any]) -> bool:
        """Apply records of the changelogs, in order; tell whether anything was new."""
        changed = False
        for record in records:
            changed |= self._take(record.topic, record.partition, record.key, record.value)
        return changed

    def take_batch(self, batch: Batch) -> AbstractSet[bytes | None]:
        """Apply a batch of a changelog; return the keys in it."""
        latest = dict(zip(batch.keys, batch.values, strict=True))
        for key, value in latest.items():
            self._take(batch.topic, batch.partition, key, value)
        return latest.keys()

    def _take(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> bool:
        if key == META_KEY:
            meta = orjson.loads(value or b"{}")
            self.positions[topic, partition] = meta.get("positions", {})
            return True
        if key is None:
            return False
        name, row_key = split_key(key)
        if name not in self._tables_of[topic]:
            return False
        self._put(topic, partition, name, row_key, value)
        return True

    def _put(self, topic: str, partition: int, table: str, key: bytes, value: bytes | None) -> None:
        stored = self._rows.setdefault((topic, table), {}).setdefault(partition, {})
        if value is None:
            stored.pop(key, None)
        else:
            stored[key] = value

    def put(
        self, topic: str, partition: int, table: str, rows: Iterable[tuple[bytes, bytes | None]]
    ) -> None:
        """Apply rows of a table by the table's own keys; unwanted tables are ignored."""
        if table not in self._tables_of[topic]:
            return
        for key, value in rows:
            self._put(topic, partition, table, key, value)

    def drop(self, topic: str, partition: int) -> None:
        """Forget a partition of a changelog."""
        self.positions.pop((topic, partition), None)
        for table in self._tables_of[topic]:
            self._rows.get((topic, table), {}).pop(partition, None)

    def adopt(self, other: "StateView", topic: str, partition: int) -> None:
        """Replace a partition of a changelog by what another view holds of it.

        Rows are shared, not copied: only one of the two may be changed until the other drops them.
        """
        self.drop(topic, partition)
        if (topic, partition) in other.positions:
            self.positions[topic, partition] = other.positions[topic, partition]
        for table in self._tables_of[topic]:
            stored = other._rows.get((topic, table), {}).get(partition)
            if stored is not None:
                self._rows.setdefault((topic, table), {})[partition] = stored

    def wants(self, topic: str) -> AbstractSet[str]:
        """Return the wanted tables of a changelog."""
        return self._tables_of[topic]

    def parts(self, topic: str, table: str) -> Iterator[tuple[int, dict[int, Ints]]]:
        """Yield each partition with its rows of a table of counts, by cell."""
        for partition, rows in sorted(self._rows.get((topic, table), {}).items()):
            yield partition, {_cell(key): np.frombuffer(row, np.int64) for key, row in rows.items()}

    def sums(self, topic: str, table: str) -> dict[int, Ints]:
        """Return the rows of a table of counts, summed over all partitions, by cell."""
        total: dict[int, Ints] = {}
        for _, rows in self.parts(topic, table):
            for cell, row in rows.items():
                total[cell] = total[cell] + row if cell in total else row
        return total


def _cell(key: bytes) -> int:
    return int.from_bytes(key, "big", signed=True)
