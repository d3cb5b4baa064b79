"""Brings RocksDB up to the end of the changelogs, reading only what it lacks."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition

from streams.engine.cancellation import unhurried
from streams.engine.changelogs.changelog import Changelogs
from streams.engine.config import EngineConfig
from streams.engine.state.table import StateError
from streams.kafka.batch import Batch
from streams.kafka.client.reader import bounds, read_to

_REPORT_EVERY = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Restored:
    """What a restore did."""

    records: int = 0
    starts: dict[str, int] = field(default_factory=dict)
    """Where each input begins now: what was before is gone by retention."""
    seconds: float = 0.0
    wiped: bool = False

    @property
    def rate(self) -> float:
        """Return records per second."""
        return self.records / self.seconds if self.seconds else 0.0


async def restore(
    changelogs: Changelogs, config: EngineConfig, name: str, inputs: Sequence[str]
) -> Restored:
    """Read the changelogs from the offsets in RocksDB to their ends, and report progress.

    The caller owns the task's transactional id already, so every transaction on the changelogs is
    decided and their ends cannot move. The restored positions must lie within the inputs.
    """
    done = Restored()
    started = time.monotonic()
    consumer = config.reader(f"{name}.restore")
    places = [TopicPartition(topic, changelogs.partition) for topic in changelogs.topics]
    try:
        async with asyncio.timeout(2 * config.request_timeout):
            await unhurried(consumer.start())
            starts, ends = await unhurried(bounds(consumer, places))
        done.wiped = _wipe_if_foreign(changelogs, starts, ends)
        for place in places:
            changelogs.skip_to(place.topic, starts[place])
            await _read(consumer, place, ends[place], changelogs, done)
        done.starts = await unhurried(_check_positions(consumer, changelogs, inputs))
    finally:
        await unhurried(consumer.stop())
    done.seconds = time.monotonic() - started
    return done


async def _check_positions(
    consumer: Any, changelogs: Changelogs, inputs: Sequence[str]
) -> dict[str, int]:
    """Refuse positions beyond the inputs; say where retention has passed them; return starts."""
    positions = changelogs.store.positions
    places = [TopicPartition(topic, changelogs.partition) for topic in inputs]
    starts, ends = await bounds(consumer, places)
    for place in places:
        position = positions.get(place.topic, 0)
        if position > ends[place]:
            raise StateError(
                f"the state of {changelogs.private}/{place.partition} has read {place.topic} up to"
                f" {position}, but it ends at {ends[place]}: the topic was made anew under this"
                " state; restore the topic, or start afresh under another application name"
            )
        if place.topic in positions:
            say_if_removed(place.topic, place.partition, position, starts[place])
    return {place.topic: starts[place] for place in places}


def say_if_removed(topic: str, partition: int, position: int, start: int) -> None:
    """Log that records were removed before they were read, if so."""
    if position < start:
        _log.error(
            "%s/%d: records %d to %d were removed before they were read; the topic's retention is"
            " too short for the break",
            topic,
            partition,
            position,
            start - 1,
        )


def _wipe_if_foreign(changelogs: Changelogs, starts: Any, ends: Any) -> bool:
    """Empty a folder that belongs to another life of the changelog: its offsets are not there."""
    held = changelogs.offsets
    for place, end in ends.items():
        offset = held[place.topic]
        if offset > end or 0 < offset < starts[place]:
            _log.warning(
                "state folder %s does not belong to changelog %s as it is now; restoring all of it",
                changelogs.store.folder,
                place.topic,
            )
            changelogs.forget()
            return True
    return False


async def _read(
    consumer: Any, place: Any, end: int, changelogs: Changelogs, done: Restored
) -> None:
    first = changelogs.offsets[place.topic]
    if first >= end:
        return
    report = _Progress(place, first, end)

    async def apply(batch: Batch) -> None:
        changelogs.apply(batch)
        done.records += len(batch)
        report(batch.next, len(batch))
        await asyncio.sleep(0)

    await read_to(consumer, place, first, end, apply)
    report.finish()


class _Progress:
    """Says every few seconds how far a long restore is."""

    def __init__(self, place: Any, first: int, end: int) -> None:
        self._place, self._first, self._end = place, first, end
        self._started = self._said = time.monotonic()
        self._records = 0

    def __call__(self, position: int, records: int) -> None:
        self._records += records
        now = time.monotonic()
        if now - self._said >= _REPORT_EVERY:
            self._said = now
            self._say("restoring", position)

    def finish(self) -> None:
        """Say how much was restored, if it was more than a tail."""
        if self._said > self._started or self._records >= 100_000:
            self._say("restored", self._end)

    def _say(self, verb: str, position: int) -> None:
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
