"""The live state of a task, read from its changelogs and nowhere else.

A worker may be running. Its transaction writes all changelogs of a partition, but no request asks
for the ends of several topics at the same moment. So the ends are requested until they stay the
same for a while: then no transaction was committed in between, since each one moves the private
changelog. The markers that end a transaction reach the topics one after the other, so what is read
may still stop between them; a difference found in a moving stream is therefore checked again
(`audit.end_to_end`).
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from audit.recording.reader import Recording, Span
from learners.arrays.tables import CellTable
from settings.model import Settings
from streams.engine.api import AgentSpec
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.state.counts import CountsTable
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics

_PAUSE = 0.02
_TRIES = 100


@dataclass(slots=True)
class LiveState:
    """What one task held when it was looked at, and up to where it had read its inputs.

    problems   what could not be read, in words without values, and how often
    """

    agent: str
    positions: Mapping[str, int] = field(default_factory=dict)
    counts: dict[str, CellTable] = field(default_factory=dict)
    entries: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)


class StateGatherer:
    """Gathers the last value of each key. No record is trusted: any client may write one."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._tables = {table.name: table for table in spec.tables()}
        self._latest: dict[str, dict[bytes, bytes]] = {name: {} for name in self._tables}
        self._meta: dict[str, Any] = {}
        self._problems: Counter[str] = Counter()

    def take(self, batch: Batch) -> None:
        """Take in a piece of a changelog."""
        for key, value in zip(batch.keys, batch.values, strict=True):
            if key == META_KEY:
                self._take_meta(value)
            else:
                self._put(key or b"", value)

    def _put(self, key: bytes, value: bytes | None) -> None:
        name, _, row_key = key.partition(b"/")
        table = self._latest.get(name.decode("ascii", "replace"))
        if table is None:
            self._problems["records of tables that these settings do not lead to"] += 1
        elif value is None:
            table.pop(row_key, None)
        else:
            table[row_key] = value

    def _take_meta(self, value: bytes | None) -> None:
        try:
            meta = msgspec.json.decode(value or b"", type=_Meta)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._problems["records of positions that cannot be read"] += 1
        else:
            self._meta = msgspec.structs.asdict(meta)

    def state(self) -> LiveState:
        """Return what was gathered, as tables."""
        meta = _Meta(**self._meta)
        self._check(meta)
        state = LiveState(self._spec.name, meta.positions, problems=self._problems)
        for name, table in self._tables.items():
            rows = self._latest[name]
            if isinstance(table, CountsTable):
                state.counts[name] = self._counts(table, rows)
            else:
                state.entries[name] = rows
        return state

    def _check(self, meta: "_Meta") -> None:
        """Compare what the state says about itself with the settings."""
        for name, layout in meta.layout.items():
            if name not in self._tables:
                self._problems["tables that these settings do not lead to"] += 1
            elif self._tables[name].layout != layout:
                text = f"table {name} in another layout than these settings lead to"
                self._problems[text] += 1

    def _counts(self, table: CountsTable, rows: Mapping[bytes, bytes]) -> CellTable:
        live, size = table.empty(), table.width * table.dtype.itemsize
        sound = {k: v for k, v in rows.items() if (len(k), len(v)) == (8, size) and k[0] < 128}
        unsound = len(rows) - len(sound)
        try:
            if sound:
                live.put(*table.decode(list(sound), list(sound.values())))
        except (IndexError, MemoryError):  # a cell that cannot be; find out which
            live = table.empty()
            for key, row in sound.items():
                try:
                    live.put(*table.decode([key], [row]))
                except (IndexError, MemoryError):
                    unsound += 1
        if unsound:
            self._problems[f"rows of table {table.name} that cannot be read"] += unsound
        return live


class _Meta(msgspec.Struct):
    """What the reserved key of a private changelog holds."""

    positions: dict[str, int] = {}
    layout: dict[str, str] = {}


async def read_state(
    recording: Recording, settings: Settings, spec: AgentSpec, partition: int
) -> LiveState:
    """Return the state of one partition of an agent."""
    topics = Topics.of(settings)
    names = topics.states_of(spec.name)
    spans = await _steady(recording, names, partition)
    gatherer = StateGatherer(spec)
    for name in names:
        await recording.read(spans[name], gatherer.take)
    state = gatherer.state()
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
