"""How one batch of work becomes visible, all or nothing.

The steps, in this order; the same numbers head the blocks of `commit`:

1. **Take.** Everything processed so far is handed over as one `Work`: encoded outputs, the changes
   of all tables, the input positions after the last record. Processing continues at once, for the
   next `Work`.
2. **Begin** the transaction (local to the producer).
3. **Outputs** and dead letters are sent.
4. **Changelog** records of all changed keys are sent, and with them the input positions.
5. **Delivered**: the brokers have acknowledged everything.
6. **Committed**: the broker has decided the transaction. From here on it is visible to all readers
   of committed records.
7. **Stored**: the same changes, the changelog offset after them and the positions are in RocksDB,
   in one `WriteBatch`.
8. **Done**: the tables may drop what RocksDB holds now; the committed positions move.

A crash before 6 leaves nothing: the next owner's start aborts the transaction, and state and
positions are those of the previous one. A crash between 6 and 7 leaves RocksDB behind the
changelog, never ahead: the next opening reads the difference. An error whose outcome is unknown (a
time-out in 6) is treated as a crash: the task opens again and finds out from the changelog what was
decided.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from aiokafka.errors import MessageSizeTooLargeError

from streams.engine.changelogs.changelog import Changelogs
from streams.engine.errors import RecordTooLargeError
from streams.engine.observer import At, Committed
from streams.engine.outbox import Outbox
from streams.engine.state.table import Change


class Step(IntEnum):
    """The numbered steps; a hook is called after each."""

    TAKEN = 1
    BEGUN = 2
    OUTPUTS = 3
    CHANGELOG = 4
    DELIVERED = 5
    COMMITTED = 6
    STORED = 7
    DONE = 8


Hook = Callable[[Step], Awaitable[None]]


async def no_hook(step: Step) -> None:
    """Do nothing after a step."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one transaction makes visible."""

    outbox: Outbox
    changes: Mapping[str, list[Change]]
    positions: Mapping[str, int]
    times: Mapping[str, int]
    records: int
    since: float
    """When the first of its records was processed, in seconds of the monotonic clock."""

    def told(
        self, agent: str, partition: int, spent: tuple[float, float], offsets: Mapping[str, int]
    ) -> Committed:
        """Return the report for observers: when the commit began and ended, how far it reaches."""
        begun, ended = spent
        return Committed(
            agent,
            partition,
            self.records,
            self.outbox.records,
            self.changes,
            self.outbox.dead_reasons,
            ended - begun,
            ended - self.since,
            self.outbox.notes,
            At(self.positions, offsets),
        )


async def commit(work: Work, producer: Any, changelogs: Changelogs, hook: Hook) -> None:
    """Carry out steps 2 to 7 for work that was taken."""
    # 2. Begin.
    await producer.begin_transaction()
    await hook(Step.BEGUN)
    # 3. Outputs.
    sent = []
    for (topic, partition), batches in work.outbox.batches.items():
        sent.append(await _send(producer, topic, partition, batches))
    await hook(Step.OUTPUTS)
    # 4. Changelog and positions.
    records = changelogs.encode(work.changes, work.positions, producer.create_batch)
    logs = {
        topic: await _send(producer, topic, changelogs.partition, batches)
        for topic, batches in records.items()
    }
    await hook(Step.CHANGELOG)
    # 5. Delivered. aiokafka would commit even if a batch failed, so wait for all of them first.
    await _delivered([*zip(work.outbox.batches, sent, strict=True), *logs.items()])
    await hook(Step.DELIVERED)
    # 6. Committed.
    await producer.commit_transaction()
    await hook(Step.COMMITTED)
    # 7. Stored.
    ends = {topic: _end(futures[-1], records[topic][-1]) for topic, futures in logs.items()}
    changelogs.store_changes(work.changes, ends, work.positions)
    await hook(Step.STORED)


async def _send(producer: Any, topic: str, partition: int, batches: list[Any]) -> list[Any]:
    """Queue record batches of one partition; each waits until the previous one is accepted."""
    return [await producer.send_batch(batch, topic, partition=partition) for batch in batches]


async def _delivered(sent: Iterable[tuple[Any, list[Any]]]) -> None:
    """Wait until the brokers have everything; name the topic if a record is too large for it."""
    futures = {future: place for place, batches in sent for future in batches}
    try:
        await asyncio.gather(*futures)
    except MessageSizeTooLargeError as error:
        refused = next(f for f in futures if f.done() and f.exception() is error)
        place = futures[refused]
        raise RecordTooLargeError(place if isinstance(place, str) else place[0]) from error


def _end(future: Any, batch: Any) -> int | None:
    """Return the offset after a delivered batch, None if the broker did not say.

    A batch that was sent again although it had arrived is acknowledged without its offset.
    """
    metadata = future.result()
    if metadata is None or metadata.offset < 0:
        return None
    return int(metadata.offset) + int(batch.record_count())
