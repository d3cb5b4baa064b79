"""Erases patients: finds what is kept of them, has it dropped, and says when the rest is gone.

1. look     read all topics and changelogs: where records of these patients are
2. erase    one erasure for each patient; every agent drops what it keeps (`agents.erasures`)
3. wait     until every agent's changelog says that it has done so
4. purge    if told to: have the broker remove the records, and with them everything that is older

Kafka removes records of a topic by age, or all up to some place; never one patient's alone. So
without a purge they go by retention, and the report says when. Bytes leave the disk a file (a
segment) at a time: a purge therefore reaches to the end of the file that holds the records, and
waits until that file is no longer written to.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from agents.clients.sender import Sender
from agents.clients.topic_reader import TopicReader
from agents.erasures import TABLE, digest_of, erasure
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.clock import wall
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka.connection import admin_client
from streams.kafka.partitions import partition_of
from streams.kafka.topic_admin import find
from streams.kafka.topics import WRITTEN_WITHIN, Topics

Progress = Callable[[str, int, int], None]
_DISORDER = 600_000
"""Milliseconds by which a record may be older than one before it."""
_LETTERS = "deadletters"
_OF_RECORDS = "retention.ms", "segment.ms"
_OF_STATE = "max.compaction.lag.ms", "delete.retention.ms"
_NEVER = 1 << 60
"""Milliseconds; Kafka's own limit, which is none, is beyond."""
_WAITING = (b"features", b"pending")
"""Tables with an entry for each patient that waits."""


class _Named(msgspec.Struct):
    """The fields of most records that name their patient."""

    id: str = ""
    subject: str | None = None


class _Meta(msgspec.Struct):
    positions: dict[str, int] = {}


_decode = msgspec.json.Decoder(_Named).decode


def _named(value: bytes | None) -> _Named:
    try:
        return _decode(value or b"")
    except (msgspec.MsgspecError, ValueError):
        return _Named()


@dataclass(slots=True)
class Place:
    """Records of the patients in one partition of a topic.

    last, at    the offset and the time of the last of them
    newest      the latest time of any record up to there
    start       where the partition begins
    end         how far a purge reaches, if it can be done
    """

    topic: str
    partition: int
    start: int
    records: int = 0
    last: int = -1
    at: int = 0
    newest: int = 0
    end: int | None = None

    @property
    def others(self) -> int:
        """Return about how many records of others a purge removes with them."""
        return max((self.end or self.last + 1) - self.start - self.records, 0)


@dataclass(slots=True)
class Kept:
    """What is kept of some patients, and who has dropped it.

    places      records, by topic and partition
    waiting     entries in the agents' state, by changelog
    erased      digests that each agent has noted as erased
    positions   how far each partition of the inputs is read
    """

    places: dict[tuple[str, int], Place] = field(default_factory=dict)
    waiting: dict[str, set[bytes]] = field(default_factory=dict)
    erased: dict[str, set[str]] = field(default_factory=dict)
    positions: dict[tuple[str, int], int] = field(default_factory=dict)


class Retention(NamedTuple):
    """How many milliseconds a topic keeps its records, and writes to one file."""

    lifetime: int
    span: int


class Compaction(NamedTuple):
    """After how many milliseconds a changelog is compacted, and drops the record of a deletion."""

    lag: int
    tombstones: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of an erasure.

    patients    how many there were
    waiting     how many of them waited in the state that each changelog holds
    again       how many of them had been erased before
    missing     agents that have not dropped what they keep
    purged      partitions whose beginning was removed
    left        partitions that cannot be purged yet, because their reader has not got that far or
                the file is still being written
    kept_for    for each topic: how long the broker keeps records
    compacted   for each changelog: when the broker drops what was deleted
    """

    patients: int
    kept: Kept
    waiting: Mapping[str, int]
    again: int = 0
    sent: bool = False
    missing: tuple[str, ...] = ()
    purged: tuple[Place, ...] = ()
    left: tuple[Place, ...] = ()
    kept_for: Mapping[str, Retention] = field(default_factory=dict)
    compacted: Mapping[str, Compaction] = field(default_factory=dict)

    def gone_by(self, place: Place) -> int | None:
        """Return when retention has removed records, in milliseconds; None if it never does."""
        lifetime, span = self.kept_for[place.topic]
        return None if lifetime < 0 else place.newest + lifetime + span

    def compacted_by(self, changelog: str, now: int) -> tuple[int | None, int | None]:
        """Return when what was deleted now is gone from a changelog, and when its key is.

        Kafka compacts a file once it is old enough and something newer was written; a task that
        runs writes at least once a day. Without a limit of the age it may never do so: None.
        """
        lag, tombstones = self.compacted[changelog]
        if lag > _NEVER:
            return None, None
        span = lag + milliseconds(WRITTEN_WITHIN)
        return now + span, now + 2 * span + tombstones

    def closed_from(self, place: Place) -> int:
        """Return the time in milliseconds from which new records go to another file than these."""
        return closed_from(place, self.kept_for[place.topic].span)


def closed_from(place: Place, span: int) -> int:
    """Return the time of the first record that is too new for the file with these.

    The file may begin with a record that is a little newer: those of one partition are not in the
    order of their times, and marks of transactions have the broker's own.
    """
    return place.newest + span + min(span, _DISORDER) + 1


class Forgetting:
    """The search for some patients, and their erasure. Use it as a context manager."""

    def __init__(self, settings: Settings, ids: Iterable[str]) -> None:
        self.settings, self.topics = settings, Topics.of(settings)
        self.digests = {name.encode(): digest_of(name) for name in ids}
        agents = {self.topics.changelog(agent): agent for agent in self.topics.agents}
        self._agents: dict[str, str] = agents
        self._kinds = {t: k for t, k in self.topics.kinds.items() if t != self.topics.erasures}
        self._reader = TopicReader(settings, [*self._kinds, *agents], "start")
        self.kept_for: dict[str, Retention] = {}
        self.compacted: dict[str, Compaction] = {}
        self._newest: dict[tuple[str, int], int] = {}
        self.kept = Kept(
            waiting={changelog: set() for changelog in agents},
            erased={agent: set() for agent in agents.values()},
        )

    async def __aenter__(self) -> Self:
        async with admin_client(self.settings.broker) as admin:
            present = await find(admin, [*self._kinds, *self._agents])
        for name, topic in present.items():
            if name in self._agents:
                self.compacted[name] = Compaction(*(int(topic.config[key]) for key in _OF_STATE))
            else:
                self.kept_for[name] = Retention(*(int(topic.config[key]) for key in _OF_RECORDS))
        await self._reader.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.__aexit__(*error)

    async def look(self, progress: Progress) -> Kept:
        """Read everything that is there."""
        ends = self._reader.ends
        total, count = sum(ends.values()) - sum(self._reader.begins.values()), 0
        async for records in self._reader.present():
            count += len(records)
            self._take(records)
            progress("topics", count, total)
        return self.kept

    def _take(self, records: Iterable[Any]) -> None:
        for record in records:
            if record.topic in self._agents:
                self._take_state(record)
                continue
            where = record.topic, record.partition
            self._newest[where] = max(self._newest.get(where, 0), record.timestamp)
            if self._is_about(record):
                start = self._reader.begins[TopicPartition(*where)]
                place = self.kept.places.setdefault(where, Place(*where, start))
                place.records += 1
                place.last, place.at = record.offset, max(place.at, record.timestamp)
                place.newest = self._newest[where]

    def _is_about(self, record: Any) -> bool:
        if record.key in self.digests or _named(record.value).id.encode() in self.digests:
            return True
        # A dead letter can hold anything: better to match too many than to miss one.
        letter = self._kinds[record.topic] == _LETTERS
        return letter and any(name in (record.value or b"") for name in self.digests)

    def _take_state(self, record: Any) -> None:
        agent, remains = self._agents[record.topic], self.kept
        if record.key == META_KEY:
            read = msgspec.json.decode(record.value or b"{}", type=_Meta).positions
            remains.positions |= {(topic, record.partition): at for topic, at in read.items()}
            return
        table, _, key = (record.key or b"").partition(b"/")
        if table == TABLE.encode() and record.value is not None:
            remains.erased[agent].add(key.decode("ascii", "replace"))
        elif table in _WAITING and key in self.digests:
            (set.discard if record.value is None else set.add)(remains.waiting[record.topic], key)

    @property
    def missing(self) -> tuple[str, ...]:
        """The agents that have not erased all of the patients."""
        digests = set(self.digests.values())
        return tuple(agent for agent, erased in self.kept.erased.items() if not digests <= erased)

    async def erase(self) -> None:
        """Send an erasure for each patient, to the partition of its records."""
        topic, at = self.topics.erasures, wall()
        async with Sender(self.settings, [topic]) as sender:
            for name, digest in self.digests.items():
                value = {topic: erasure(digest, at)}
                partition = partition_of(name, self.settings.topics.partitions)
                await sender.send(digest.encode(), value, at, partition)

    async def wait(self, seconds: float) -> None:
        """Read on until every agent has erased the patients, or for some seconds."""
        try:
            async with asyncio.timeout(seconds):
                while self.missing:
                    self._take(await self._reader.read())
        except TimeoutError:
            return

    async def purge(self) -> tuple[list[Place], list[Place]]:
        """Have the broker remove the files with the records, and everything before them.

        Return the places that were purged, and those that cannot be yet.
        """
        purged: list[Place] = []
        left: list[Place] = []
        for where, place in sorted(self.kept.places.items()):
            closed = closed_from(place, self.kept_for[place.topic].span)
            place.end = await self._reader.offset_at(*where, closed) if closed < wall() else None
            unread = self.kept.positions.get(where, place.end or 0) < (place.end or 0)
            (left if place.end is None or unread else purged).append(place)
        if purged:
            async with admin_client(self.settings.broker) as admin:
                ends = {
                    TopicPartition(p.topic, p.partition): RecordsToDelete(p.end) for p in purged
                }
                await admin.delete_records(ends)
        return purged, left


async def forget(
    settings: Settings,
    ids: Collection[str],
    *,
    progress: Progress = lambda *_: None,
    look_only: bool = False,
    purge: bool = False,
    patience: float = 60.0,
) -> Forgotten:
    """Erase patients; see the steps at the top."""
    async with Forgetting(settings, ids) as work:
        remains = await work.look(progress)
        erased = [set(work.digests.values()) & digests for digests in remains.erased.values()]
        again = len(set.intersection(*erased))
        waiting = {name: len(those) for name, those in remains.waiting.items() if those}
        if look_only or not (remains.places or waiting):
            return Forgotten(
                len(ids), remains, waiting, again, kept_for=work.kept_for, compacted=work.compacted
            )
        await work.erase()
        await work.wait(patience)
        purged, left = await work.purge() if purge and not work.missing else ([], [])
        return Forgotten(
            patients=len(ids),
            kept=remains,
            waiting=waiting,
            again=again,
            sent=True,
            missing=work.missing,
            purged=tuple(purged),
            left=tuple(left),
            kept_for=work.kept_for,
            compacted=work.compacted,
        )


async def ids_of(settings: Settings, subject: str, progress: Progress) -> list[str]:
    """Return the ids of all visits of a person that the topics know of."""
    topics = Topics.of(settings)
    kinds = {"instances", "contexts", "predictions", "diagnoses"}
    ids: dict[str, None] = {}
    names = [topic for topic, kind in topics.kinds.items() if kind in kinds]
    async with TopicReader(settings, names, "start") as reader:
        total, count = sum(reader.ends.values()) - sum(reader.begins.values()), 0
        async for records in reader.present():
            count += len(records)
            progress("topics", count, total)
            for record in records:
                if b'"subject"' in (record.value or b""):
                    named = _named(record.value)
                    if named.subject == subject and named.id:
                        ids[named.id] = None
    return list(ids)
