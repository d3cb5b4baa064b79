"""Faust's transport for batch topics: agents get whole batches, other topics work as usual.

Faust finds it through the entry point `faust.transports`, by the scheme of the broker's address:
`hb://host:port`. The application's `engine` (a `TaskGroup`) says which topics are batch topics.

What differs from Faust's aiokafka driver, for batch topics only:

- Fetched records reach the agent as one event per partition whose value is a `Batch`.
- A partition is read only while its task is open and has room, so memory is bounded by the
  tasks' backlogs, and a slow task does not hold up the others.
- Positions come from the tasks. The group's committed offsets are written now and then, for
  displays of lag, and never read.
- Before partitions are revoked, what the tasks have processed is committed.

All topics are read committed, because other tasks write them in transactions.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode import Service

from streams.engine.health import Cause, Symptom
from streams.engine.tasks.group import TaskGroup
from streams.faust.fetching import Fetching, Shown
from streams.faust.read_offsets import ReadOffsets
from streams.kafka.batch import Batch

_POLL = 0.05
"""How long to wait for other partitions while one of them has no room, in seconds."""

_SHOW_EVERY = 5.0
_CHECK_EVERY = 1.0
_OVERDUE = 3.0
"""Seconds after which a batch handed to Faust counts as lost."""
_log = logging.getLogger(__name__)


class Consumer(driver.Consumer):
    """Faust's consumer with batch topics; the source of batches for the application's tasks."""

    _thread: Fetching

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.engine: TaskGroup = self.app.engine  # type: ignore[attr-defined]  # see streams.faust.app
        self.engine.connect(self)
        self._read_offset = ReadOffsets(self.engine.topics)
        self._on_the_way: dict[Any, float] = {}
        self._arrived, self._awake = asyncio.Event(), asyncio.Event()
        self._last_reports: dict[tuple[str, int], Shown] = {}
        self._turned = time.monotonic()

    def _new_consumer_thread(self) -> Fetching:
        return Fetching(self, loop=self.loop, beacon=self.beacon)

    # From the broker to the agent.

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109  # Faust calls it so
        self._turned = time.monotonic()
        return await super()._wait_next_records(timeout)

    async def _getmany(
        self,
        active_partitions: Any,
        timeout: float,  # noqa: ASYNC109  # Faust calls it so
    ) -> Any:
        if active_partitions is None:
            return await super()._getmany(active_partitions, timeout)
        await self._wait_for_arrival()
        ready = {tp for tp in active_partitions if self._wants(tp)}
        if not ready:
            self._awake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._awake.wait()
            return {}
        patience = timeout if len(ready) == len(active_partitions) else _POLL
        fetched = await self._thread.getmany(ready, patience)
        now = time.monotonic()
        self._on_the_way.update({tp: now for tp in fetched if tp.topic in self.engine.topics})
        await self._realign(ready - fetched.keys())
        return fetched

    async def _realign(self, partitions: Collection[Any]) -> None:
        """Align reading with the tasks' positions, for partitions with no batch in flight.

        Normally both agree, unless a call was cancelled in a rebalance and what it had fetched was
        lost.
        """
        stray = {}
        for tp in partitions:
            expected = self.engine.expected(*tp)
            if expected is not None and self._thread.position_of(tp) not in (None, expected):
                stray[tp] = expected
        if stray:
            _log.info(
                "%d partitions are not being read from their tasks' positions; seeking", len(stray)
            )
            await self._seek_within(stray)

    async def _seek_within(self, positions: Mapping[Any, int]) -> None:
        """Seek, but not to what retention has removed; tell tasks what they missed.

        No other partition is read meanwhile. If the broker does not answer, `_realign` will find
        the gap again.
        """
        try:
            async with asyncio.timeout(_OVERDUE):
                starts = await self._thread.earliest_offsets(*[TP(*tp) for tp in positions])
        except (KafkaError, TimeoutError) as error:
            _log.info("cannot read where partitions begin now: %s", type(error).__name__)
            return
        begins = {tuple(tp): start for tp, start in starts.items()}
        for (topic, number), expected in positions.items():
            if begins[topic, number] > expected:
                self.engine.skip(topic, number, begins[topic, number])
        places = {tp: max(at, begins[tuple(tp)]) for tp, at in positions.items()}
        self._thread.seek_all(places)

    def _wants(self, tp: Any) -> bool:
        if tp.topic not in self.engine.topics:
            return True
        return tp not in self._on_the_way and self.engine.wants(tp.topic, tp.partition)

    async def _wait_for_arrival(self) -> None:
        """Let the agents take what is in flight: at most one batch of each partition may be."""
        if self._on_the_way:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await self._arrived.wait()
        overdue = time.monotonic() - _OVERDUE
        for tp in [tp for tp, since in self._on_the_way.items() if since < overdue]:
            await self._fetch_again(tp)

    async def _fetch_again(self, tp: Any) -> None:
        """Continue at the task's position; Faust silently drops events in rebalances."""
        del self._on_the_way[tp]
        expected = self.engine.expected(*tp)
        if expected is not None:
            _log.info("a batch of %s/%d did not reach its agent; reading it again", *tp)
            await self.rewind(tp.partition, {tp.topic: expected})

    def _to_message(self, tp: Any, record: Any) -> Any:
        if type(record) is not Batch:
            return super()._to_message(tp, record)
        return ConsumerMessage(
            record.topic,
            record.partition,
            record.next - 1,
            record.timestamps[-1] / 1000 if len(record) else 0.0,
            0,
            [],
            None,
            record,  # type: ignore[arg-type]  # Faust never looks into a value
            None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )

    def highwater(self, tp: Any) -> int:
        """Return the end of a partition; 0 for one that was just taken away (Faust would crash)."""
        try:
            return int(super().highwater(tp) or 0)
        except (KeyError, AssertionError, KafkaError, AttributeError):
            return 0

    async def deliver(self, batch: Batch) -> None:
        """Hand a batch that reached its agent to its task; called by the agent."""
        tp = TP(batch.topic, batch.partition)
        self._on_the_way.pop(tp, None)
        if not self._on_the_way:
            self._arrived.set()
        if self.engine.deliver(batch):
            return
        expected = self.engine.expected(batch.topic, batch.partition)
        if expected is not None and batch.next > expected and self.flow_active:
            # What the task needs next was lost in between, or is inside a batch that began earlier.
            await self._seek_within({tp: expected})

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Apply Faust's check for slow streams to normal topics only; /readyz covers tasks."""
        if tp.topic not in self.engine.topics:
            super().verify_event_path(now, tp)

    # Called by tasks (see streams.engine.tasks.source).

    async def rewind(self, partition: int, positions: Mapping[str, int]) -> None:
        """Continue reading a partition of some topics at the given offsets."""
        places = {(topic, partition): offset for topic, offset in positions.items()}
        self._thread.seek_all(places)

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the last known end of committed records in a partition."""
        return self._known("last_stable_offset", topic, partition)

    def written_to(self, topic: str, partition: int) -> int | None:
        """Return the last known end of all records in a partition."""
        return self._known("highwater", topic, partition)

    def _known(self, method: str, topic: str, partition: int) -> int | None:
        consumer: Any = self._thread._consumer
        try:
            offset: int | None = getattr(consumer, method)(TopicPartition(topic, partition))
        except (KeyError, AssertionError, KafkaError, AttributeError):
            return None  # no longer assigned
        return offset

    async def confirmed(self) -> None:
        """Return once the group's coordinator has confirmed, after this call, our membership."""
        await self._thread.confirmed()

    @property
    def still_for(self) -> float:
        """Return how many seconds ago batches were last requested; 0 in a rebalance."""
        reading = self.engine.joined and self.flow_active
        return time.monotonic() - self._turned if reading else 0.0

    def symptoms(self) -> list[Symptom]:
        """Return what prevents batches from coming."""
        symptoms = self._thread.symptoms()
        if self.still_for > self.engine.config.silent_after:
            text = f"nothing has been read for {self.still_for:.0f} s"
            symptoms.append(Symptom(Cause.NOT_READING, text))
        return symptoms

    @Service.task
    async def _check_client(self) -> None:
        """Crash, and the worker with it, if a part of the client has ended."""
        while not self.should_stop:
            await self.sleep(_CHECK_EVERY)
            if not self.should_stop:
                self._thread.check()

    def wake(self) -> None:
        """Note that a task has room again."""
        self._awake.set()

    # Rebalances and shutdown.

    def stop_flow(self) -> None:
        """Stop reading until `resume_flow`."""
        super().stop_flow()
        self.engine.still_since = self.engine.still_since or time.monotonic()

    def resume_flow(self) -> None:
        """Continue reading."""
        super().resume_flow()
        self._turned = time.monotonic()
        self.engine.still_since = None

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Stop the flow, then commit what the tasks have processed."""
        await super().on_partitions_revoked(revoked)
        await self.engine.revoke()

    async def on_partitions_assigned(self, assigned: Any, generation_id: int = 0) -> None:
        """Open, keep and close tasks; then let Faust start the flow."""
        self._on_the_way.clear()
        await self.engine.assign(tuple(tp) for tp in assigned)
        await super().on_partitions_assigned(assigned, generation_id)

    async def seek_to_committed(self) -> Any:
        """Seek each partition to the position of its task."""
        self._on_the_way.clear()
        topics = self.engine.topics
        assigned = self.assignment()
        foreign = [tp for tp in assigned if tp.topic not in topics]
        offsets = dict(await self._thread.seek_committed(foreign)) if foreign else {}
        positions = {tp: self.engine.expected(*tp) for tp in assigned if tp.topic in topics}
        expected = {tp: at for tp, at in positions.items() if at is not None}
        self._thread.seek_all(expected)
        return {**offsets, **expected}

    @Service.task
    async def _show_positions(self) -> None:
        """Write the group's offsets now and then, and at once if a task's health changes."""
        due = time.monotonic() + _SHOW_EVERY
        while not self.should_stop:
            await self.sleep(_CHECK_EVERY)
            # During a rebalance the broker answers nothing else on this connection, then rejects
            # the commit as one of the previous generation, and the client gives up its membership
            # over that: another rebalance, or a session time-out.
            if self.engine.still_since is not None:
                continue
            conditions = {tp: report.condition for tp, report in self._last_reports.items()}
            if time.monotonic() > due or conditions != self.engine.conditions():
                await self._show()
                due = time.monotonic() + _SHOW_EVERY

    async def _show(self) -> None:
        try:
            reports = await self._to_show()
            changed = {
                tp: offset for tp, offset in reports.items() if self._last_reports.get(tp) != offset
            }
            if changed:
                await self._thread.show_positions(changed)
            self._last_reports = reports
        except KafkaError as error:
            _log.debug("the group's offsets were not written: %s", error)

    async def _to_show(self) -> dict[tuple[str, int], Shown]:
        """Return where each partition stands and what is wrong with it.

        A task that is not open has no position: the last one written stays.
        """
        positions = {
            (topic, status.partition): position
            for status in self.engine.statuses()
            for topic, position in status.positions.items()
        }
        reports = {}
        for tp, condition in self.engine.conditions().items():
            position = positions.get(tp)
            if position is None and tp in self._last_reports:
                position = self._last_reports[tp].position
            if position is None and condition:
                position = await self._thread.committed(tp)
            if position is not None:
                reports[tp] = Shown(position, condition)
        return reports

    async def on_stop(self) -> None:
        """Commit what the tasks have processed, close them, and only then leave the group."""
        with contextlib.suppress(TimeoutError):  # displays of lag are not worth waiting for
            async with asyncio.timeout(self.engine.config.leave_timeout):
                await self._show()
        await self.engine.close()
        await super().on_stop()


class Producer(driver.Producer):
    """Faust's own producer, for normal topics, with the engine's connection."""

    def _settings_auth(self) -> Mapping[str, Any]:
        engine: TaskGroup = self.app.engine  # type: ignore[attr-defined]  # see streams.faust.app
        return engine.config.client


class Transport(driver.Transport):
    """The transport behind `hb://` addresses."""

    Consumer = Consumer
    Producer = Producer
