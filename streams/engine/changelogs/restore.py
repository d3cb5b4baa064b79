"""Brings RocksDB up to the end of the changelogs, reading only what is missing."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka import TopicPartition

from settings.errors import BrokerError
from streams.clock import wall
from streams.engine.cancellation import shielded
from streams.engine.changelogs.changelog import Changelogs
from streams.engine.config import EngineConfig
from streams.engine.state.table import StateError
from streams.kafka.batch import Batch
from streams.kafka.client.reader import bounds, high_watermarks, read_to
from streams.kafka.client.topic_facts import topic_ids, topic_setting

_REPORT_EVERY = 2.0
_HOUR = 3_600_000
_DAY = 24 * _HOUR
"""In milliseconds; as long as Kafka keeps the record of a deletion by default."""
_CLOCKS_DIFFER = _HOUR
_SAFE_SHARE = 0.9
"""Fraction of the time that deletions are kept: the restore takes time, and clocks differ."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Restored:
    """What a restore did."""

    read: dict[str, int] = field(default_factory=dict)
    """How many records of each changelog were read."""
    starts: dict[str, int] = field(default_factory=dict)
    """Where each input begins now: retention has removed what came before."""
    seconds: float = 0.0

    @property
    def records(self) -> int:
        """Return how many records were read."""
        return sum(self.read.values())

    @property
    def rate(self) -> float:
        """Return records per second."""
        return self.records / self.seconds if self.seconds else 0.0


async def restore(
    changelogs: Changelogs, config: EngineConfig, name: str, inputs: Sequence[str]
) -> Restored:
    """Read the changelogs from the offsets in RocksDB to their ends, and report progress.

    The caller already owns the task's transactional id, so every transaction on the changelogs is
    decided and their ends cannot move. The restored positions must lie within the inputs.
    """
    restored = Restored()
    started = time.monotonic()
    consumer = config.reader(f"{name}.restore")
    places = [TopicPartition(topic, changelogs.partition) for topic in changelogs.topics]
    try:
        async with asyncio.timeout(2 * config.request_timeout):
            await shielded(consumer.start())
            starts, ends = await shielded(bounds(consumer, places))
            ids = await shielded(topic_ids(consumer, [*changelogs.topics, *inputs]))
            changelogs.origin = replace(changelogs.origin, topics=ids)
            changelogs.check_folder()
            await shielded(_replace_if_old(consumer, changelogs))
            await shielded(_check_decided(consumer, ends))
        _check_bounds(changelogs, starts, ends)
        for place in places:
            restored.read[place.topic] = await _read(consumer, place, ends[place], changelogs)
        _check_meta(changelogs, restored)
        restored.starts = await shielded(_check_positions(consumer, changelogs, inputs))
        changelogs.confirm()
    finally:
        await shielded(consumer.stop())
    restored.seconds = time.monotonic() - started
    return restored


async def _replace_if_old(consumer: Any, changelogs: Changelogs) -> None:
    """Set aside a folder that is older than deletions are kept: it would miss some of them.

    A changelog keeps the record of a deletion for at least `delete.retention.ms`. A clock that was
    set back or ahead makes a folder's age unknown, which is just as bad.
    """
    written = changelogs.store.written
    if written is None or not any(changelogs.offsets.values()):
        return
    lifetime = min([await _deletions_kept(consumer, topic) for topic in changelogs.topics])
    age = wall() - written
    if -_CLOCKS_DIFFER <= age <= _SAFE_SHARE * lifetime:
        return
    _log.warning(
        "the state folder %s was last written %.1f days ago, and its changelogs keep deletions for"
        " %.1f days; it is set aside, and all of the state is restored",
        changelogs.store.folder,
        age / _DAY,
        lifetime / _DAY,
    )
    changelogs.start_over("old")


async def _deletions_kept(consumer: Any, topic: str) -> int:
    """Return for how many milliseconds a changelog keeps the record of a deletion."""
    setting = await topic_setting(consumer, topic, "delete.retention.ms")
    return _DAY if setting is None else int(setting)


async def _check_decided(consumer: Any, ends: Mapping[Any, int]) -> None:
    """Refuse to read changelogs held back by an open transaction: the state would be outdated.

    Our own transactions are all decided, so committed records must reach to the very end.
    """
    for place, written in (await high_watermarks(consumer, list(ends))).items():
        if ends[place] < written:
            raise BrokerError(
                f"another program has left a transaction open on the changelog {place.topic}"
                f"/{place.partition}; {written - ends[place]} records behind it cannot be read"
            )


def _check_bounds(changelogs: Changelogs, starts: Any, ends: Any) -> None:
    """Refuse changelogs that do not reach as far as the folder, or have lost their beginning."""
    for place, end in ends.items():
        offset = changelogs.offsets[place.topic]
        where = f"the changelog {place.topic}/{place.partition}"
        if offset > end:
            raise StateError(
                f"{where} ends at {end}, and the state folder {changelogs.store.folder} was written"
                f" up to {offset}: the broker lost records. Restore them; or move the folder away"
                " to continue from what the changelog holds (records may be answered twice); or"
                " use another topics.prefix"
            )
        if offset < starts[place]:
            raise StateError(
                f"{where} begins at {starts[place]}: records were deleted that the state needs."
                " Restore them, or use another topics.prefix"
            )


def _check_meta(changelogs: Changelogs, restored: Restored) -> None:
    """Refuse shared rows without the private record that says how far inputs were read."""
    if (
        restored.records
        and not restored.read[changelogs.private]
        and not changelogs.store.positions
    ):
        raise StateError(
            f"the changelog {changelogs.private}/{changelogs.partition} is empty, but the state has"
            " rows elsewhere: it was recreated. Bring the earlier topic back, or start under"
            " another topics.prefix"
        )


async def _check_positions(
    consumer: Any, changelogs: Changelogs, inputs: Sequence[str]
) -> dict[str, int]:
    """Refuse positions beyond the inputs; log where retention has passed them; return starts."""
    positions = changelogs.store.positions
    places = [TopicPartition(topic, changelogs.partition) for topic in inputs]
    starts, ends = await bounds(consumer, places)
    for place in places:
        position = positions.get(place.topic, 0)
        if position > ends[place]:
            raise StateError(
                f"the state of {changelogs.private}/{place.partition} has read {place.topic} up to"
                f" {position}, but it ends at {ends[place]}: it was recreated, or its end was lost."
                " Restore it, or use another topics.prefix"
            )
        if place.topic in positions:
            say_if_removed(place.topic, place.partition, position, starts[place])
    return {place.topic: starts[place] for place in places}


def say_if_removed(topic: str, partition: int, position: int, start: int) -> None:
    """Log that records were removed before they were read, if so."""
    if position < start:
        _log.error(
            "%s/%d: records %d to %d were removed before they were read; the topic's retention is"
            " shorter than the outage",
            topic,
            partition,
            position,
            start - 1,
        )


async def _read(consumer: Any, place: Any, end: int, changelogs: Changelogs) -> int:
    """Apply what a changelog holds beyond the folder; return the number of records."""
    first = changelogs.offsets[place.topic]
    if first >= end:
        return 0
    progress = _Progress(place, first, end)

    async def apply(batch: Batch) -> None:
        changelogs.apply(batch)
        progress(batch.next, len(batch))
        await asyncio.sleep(0)

    await read_to(consumer, place, first, end, apply)
    return progress.finish()


class _Progress:
    """Logs the progress of a long restore every few seconds."""

    def __init__(self, place: Any, first: int, end: int) -> None:
        self._place, self._first, self._end = place, first, end
        self._started = self._reported = time.monotonic()
        self._records = 0

    def __call__(self, position: int, records: int) -> None:
        self._records += records
        now = time.monotonic()
        if now - self._reported >= _REPORT_EVERY:
            self._reported = now
            self._report("restoring", position)

    def finish(self) -> int:
        """Log how much was restored, if it was more than a tail; return it."""
        if self._reported > self._started or self._records >= 100_000:
            self._report("restored", self._end)
        return self._records

    def _report(self, verb: str, position: int) -> None:
        share = 100 * (position - self._first) / (self._end - self._first)
        rate = self._records / max(time.monotonic() - self._started, 1e-9)
        _log.info(
            "%s %s/%d: %d records, %.0f %%, %.0f/s",
            verb,
            self._place.topic,
            self._place.partition,
            self._records,
            share,
            rate,
        )
