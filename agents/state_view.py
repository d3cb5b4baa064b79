"""The agents' state as seen from outside: read from its changelogs, never from a worker's folder.

Only what a reader asks for is kept, as the last value of each key of each partition. What every
batch writes anew (positions, totals, the head of the ledger) is near the end of its changelog, so
it is looked for from there; a table of many keys is read from its start.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import orjson

from agents.reading import TopicReader
from learners.types import Ints
from streams.settings import Settings
from streams.state.table import split_key
from streams.tasks.changelog import META_KEY

_FIRST_STEP = 20
_GROWTH = 8


class StateView:
    """The last values of the wanted tables, by topic, table and partition."""

    def __init__(self, wanted: Mapping[str, Collection[str]]) -> None:
        """`wanted` names the tables to keep of each changelog topic."""
        self._wanted = wanted
        self._rows: dict[tuple[str, str], dict[int, dict[bytes, bytes]]] = {}
        self.positions: dict[tuple[str, int], dict[str, int]] = {}

    @property
    def topics(self) -> list[str]:
        """Return the changelog topics that it takes in."""
        return list(self._wanted)

    def take(self, records: Iterable[Any]) -> bool:
        """Take in records of the changelogs, in their order; tell whether anything was new."""
        changed = False
        for record in records:
            if record.key == META_KEY:
                meta = orjson.loads(record.value or b"{}")
                self.positions[record.topic, record.partition] = meta.get("positions", {})
                changed = True
            elif record.key is not None:
                changed |= self._put(record)
        return changed

    def _put(self, record: Any) -> bool:
        name, rest = split_key(record.key)
        if name not in self._wanted[record.topic]:
            return False
        held = self._rows.setdefault((record.topic, name), {}).setdefault(record.partition, {})
        if record.value is None:
            held.pop(rest, None)
        else:
            held[rest] = record.value
        return True

    def entries(self, topic: str, table: str, key: bytes) -> list[bytes]:
        """Return the value of a key in each partition that has one."""
        parts = self._rows.get((topic, table), {}).values()
        return [held[key] for held in parts if key in held]

    def sums(self, topic: str, table: str) -> dict[int, Ints]:
        """Return the rows of a table of counts, summed over all partitions, by cell."""
        total: dict[int, Ints] = {}
        for held in self._rows.get((topic, table), {}).values():
            for key, value in held.items():
                cell, row = int.from_bytes(key, "big", signed=True), np.frombuffer(value, np.int64)
                total[cell] = total[cell] + row if cell in total else row
        return total

    def has(self, topic: str, partition: int, keys: Collection[bytes]) -> bool:
        """Tell whether all these changelog keys of a partition were seen."""
        for key in keys:
            if key == META_KEY:
                if (topic, partition) not in self.positions:
                    return False
            else:
                name, rest = split_key(key)
                if rest not in self._rows.get((topic, name), {}).get(partition, {}):
                    return False
        return True


async def read_state(
    settings: Settings,
    view: StateView,
    whole: Collection[str],
    tails: Mapping[str, Collection[bytes]],
) -> None:
    """Fill a view: `whole` topics from their start, the others back to the keys named in `tails`.

    A key that no batch has written yet is looked for in vain, back to the start of its topic.
    """
    topics = [*whole, *(topic for topic in tails if topic not in whole)]
    async with TopicReader(settings, topics, "start") as reader:
        first = {p: reader.begins[p] if p.topic in whole else reader.ends[p] for p in reader.begins}
        reader.seek(first)
        async for records in reader.present():
            view.take(records)
        step = _FIRST_STEP
        while missing := _missing(reader, view, tails, first):
            first |= {p: max(reader.begins[p], reader.ends[p] - step) for p in missing}
            reader.seek({p: first[p] for p in missing})
            async for records in reader.present():
                view.take(records)
            step *= _GROWTH


def _missing(
    reader: TopicReader,
    view: StateView,
    tails: Mapping[str, Collection[bytes]],
    first: Mapping[Any, int],
) -> list[Any]:
    """Return the partitions in which a key was not seen and there is more to read."""
    return [
        place
        for place, begin in reader.begins.items()
        if place.topic in tails
        and first[place] > begin
        and not view.has(place.topic, place.partition, tails[place.topic])
    ]
