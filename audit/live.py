"""The live state of a task, read from its changelogs and nowhere else.

A worker may be running. Its transaction writes both changelogs of a partition, but no request asks
for the ends of two topics at one moment. So the ends are asked for until they stay the same for a
while: then no transaction was decided in between, as each of them moves the private changelog. The
markers that decide a transaction reach topics one after the other, so a cut may still fall between
them; whoever finds a difference in a stream that moves looks again (`audit.end_to_end`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from audit.recording.recording import Recording, Span
from learners.arrays.tables import CellTable
from settings.errors import InputError
from streams.engine.api import AgentSpec
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.state.counts import CountsTable
from streams.engine.state.table import Table, split_key
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics

_PAUSE = 0.02
_TRIES = 100


@dataclass(slots=True)
class LiveState:
    """What one task held when it was looked at, and up to where it had read its inputs."""

    agent: str
    positions: Mapping[str, int] = field(default_factory=dict)
    counts: dict[str, CellTable] = field(default_factory=dict)
    entries: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


class _Reader:
    """Gathers the last value of each key."""

    def __init__(self, agent: str, tables: Sequence[Table]) -> None:
        self.agent = agent
        self.tables = {table.name: table for table in tables}
        self.latest: dict[str, dict[bytes, bytes]] = {name: {} for name in self.tables}
        self.positions: dict[str, int] = {}

    def take(self, batch: Batch) -> None:
        """Take in a piece of a changelog."""
        for key, value in zip(batch.keys, batch.values, strict=True):
            if key == META_KEY:
                self._meta(value)
            elif key is not None:
                self._put(key, value)

    def _put(self, key: bytes, value: bytes | None) -> None:
        name, rest = split_key(key)
        if name not in self.latest:
            raise InputError(
                f"the state of {self.agent} has a table {name} that these settings do not lead to;"
                " audit with the settings of the workers"
            )
        if value is None:
            self.latest[name].pop(rest, None)
        else:
            self.latest[name][rest] = value

    def _meta(self, value: bytes | None) -> None:
        meta: dict[str, Any] = orjson.loads(value or b"{}")
        self.positions = meta.get("positions", {})
        for name, layout in meta.get("layout", {}).items():
            if name in self.tables and self.tables[name].layout != layout:
                raise InputError(
                    f"the state of {self.agent} holds table {name} in another layout than these"
                    " settings lead to; audit with the settings of the workers"
                )

    def state(self) -> LiveState:
        """Return what was gathered, as tables."""
        made = LiveState(self.agent, self.positions)
        for name, table in self.tables.items():
            held = self.latest[name]
            if isinstance(table, CountsTable):
                made.counts[name] = table.empty()
                if held:
                    made.counts[name].put(*table.decode(list(held), list(held.values())))
            else:
                made.entries[name] = held
        return made


async def read_state(
    recording: Recording, topics: Topics, spec: AgentSpec, partition: int
) -> LiveState:
    """Return the state of one partition of an agent."""
    names = topics.shared(spec.name), topics.changelog(spec.name)
    spans = await _steady(recording, names, partition)
    reader = _Reader(spec.name, spec.tables())
    for name in names:
        await recording.read(spans[name], reader.take)
    state = reader.state()
    state.ends = {name: span.end for name, span in spans.items()}
    return state


async def _steady(recording: Recording, names: Sequence[str], partition: int) -> dict[str, Span]:
    """Return spans whose ends stayed the same for a moment."""
    spans = await recording.spans(names, partition)
    for _ in range(_TRIES):
        await asyncio.sleep(_PAUSE)
        again = await recording.spans(names, partition)
        if again == spans:
            break
        spans = again
    return spans
