"""One aiokafka consumer that reads all topics of a worker.

Faust runs it in a thread with its own event loop and requests every fetch through a queue. With one
interpreter lock that gains nothing, and each step between the threads waits up to five milliseconds
for the lock. Here it runs in the worker's own loop: Faust's calls "into the thread" are plain
calls.

It depends on Faust's `AIOKafkaConsumerThread` (which calls `_create_worker_consumer` and
`_fetch_records`), on mode's `ServiceThread` and on aiokafka's fetcher; tests/streams/
test_upstream.py pins them.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode import Service
from mode.utils.futures import maybe_async

from settings.errors import HbError
from streams.engine.health import Cause, Symptom, broker_away
from streams.engine.tasks.group import TaskGroup
from streams.faust.assignor import TogetherAssignor
from streams.kafka.client.answers import Answers
from streams.kafka.client.fetched import (
    check_alive,
    is_closed,
    is_reassigning,
    position_of,
    take_batches,
    take_records,
    wait_for_fetch,
)
from streams.kafka.client.membership import GroupMember

_DAY_MS = 86_400_000
_PARTLY = 1.5
_log = logging.getLogger(__name__)


class Shown(NamedTuple):
    """What the group stores for a partition: a position, and what is wrong, if anything."""

    position: int
    condition: str


class Fetching(driver.AIOKafkaConsumerThread):
    """Runs the aiokafka consumer in the event loop that it is given."""

    wait_for_shutdown = False
    _answers: Answers | None = None

    def __init__(self, consumer: Any, *, loop: Any, beacon: Any) -> None:
        super().__init__(consumer, loop=loop, thread_loop=loop, beacon=beacon)

    # A service without a thread.

    async def start(self) -> None:
        """Connect and join the group."""
        self._thread_started.set()
        await self._default_start()

    async def stop(self) -> None:
        """Leave the group."""
        if self._started.is_set():
            await Service.stop(self)

    async def on_stop(self) -> None:
        """Leave the group, even if the broker does not answer."""
        leaving = asyncio.ensure_future(self.on_thread_stop())
        _, late = await asyncio.wait([leaving], timeout=self.engine.config.leave_timeout)
        if late:
            _log.warning("the broker does not answer; leaving the group without telling it")
            leaving.cancel()

    async def _stop_children(self) -> None:
        await self._default_stop_children()

    async def _stop_futures(self) -> None:
        await self._default_stop_futures()

    async def _stop_exit_stacks(self) -> None:
        await self._default_stop_exit_stacks()

    async def call_thread(self, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of the consumer."""
        return await maybe_async(fun(*args, **kwargs))

    # Reading.

    @property
    def engine(self) -> TaskGroup:
        """Return the application's tasks."""
        engine: TaskGroup = self.app.engine  # type: ignore[attr-defined]  # see streams.faust.app
        return engine

    def _create_worker_consumer(self, transport: Any) -> Any:  # noqa: ARG002  # Faust calls it so
        if self.app.tables.changelog_topics:
            raise HbError("Faust's own tables are not supported beside the engine's")
        conf, config = self.app.conf, self.engine.config
        consumer = GroupMember(
            **config.client,
            client_id=conf.broker_client_id,
            group_id=conf.id,
            partition_assignment_strategy=[self._new_assignor()],
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=conf.broker_max_poll_records,
            # A worker whose tasks wait for the broker does not poll, and that is fine; heartbeats
            # and /readyz detect a worker that is stuck.
            max_poll_interval_ms=_DAY_MS,
            max_partition_fetch_bytes=config.fetch_bytes,
            # aiokafka has only one fetch per broker in flight: a partition that was full when it
            # was sent waits until it is answered.
            fetch_max_wait_ms=100,
            request_timeout_ms=int(config.request_timeout * 1000),
            # Topics that are created after the worker started are found within this time.
            metadata_max_age_ms=30_000,
            session_timeout_ms=int(config.session_timeout * 1000),
            rebalance_timeout_ms=int(conf.broker_rebalance_timeout * 1000),
            heartbeat_interval_ms=int(config.heartbeat * 1000),
        )
        self._answers = Answers.of(consumer)
        return consumer

    def check(self) -> None:
        """Raise the error that has ended a part of the client; aiokafka does not report it."""
        if self._consumer is not None:
            check_alive(self._consumer)

    def symptoms(self) -> list[Symptom]:
        """Return what prevents the broker's answers from coming."""
        answers, config = self._answers, self.engine.config
        if answers is None:
            return []
        if answers.silent_for > config.silent_after:
            return [broker_away(config.address)]
        symptoms = []
        # When a broker goes away, everything goes unanswered, but not from the same moment on.
        limit = _PARTLY * config.silent_after
        if answers.unfetched_for > limit:
            text = f"no fetch was answered for {answers.unfetched_for:.0f} s"
            symptoms.append(Symptom(Cause.NOT_FETCHING, text))
        unheard = time.monotonic() - answers.coordinator
        if unheard > limit and self.engine.joined and self.engine.still_since is None:
            text = f"the group's coordinator has not answered for {unheard:.0f} s"
            symptoms.append(Symptom(Cause.NO_COORDINATOR, text))
        return symptoms

    def _new_assignor(self) -> TogetherAssignor:
        engine = self.engine

        def holdings() -> dict[str, list[int]]:
            numbers: dict[str, list[int]] = {}
            for name, number in list(engine.tasks):
                numbers.setdefault(engine.specs[name].inputs[0], []).append(number)
            return numbers

        return TogetherAssignor(lambda: [spec.inputs for spec in engine.specs.values()], holdings)

    async def _fetch_records(
        self,
        consumer: Any,
        active_partitions: Any,
        timeout: float | None = None,  # noqa: ASYNC109  # Faust calls it so
        max_records: int | None = None,
    ) -> dict[Any, list[Any]]:
        """Return fetched batches and records by partition; wait up to `timeout` for some."""
        topics = self.engine.topics
        batched = {tp for tp in active_partitions if tp.topic in topics}
        unbatched = active_partitions - batched
        deadline = self.thread_loop.time() + (timeout or 0.0)
        while self.consumer.flow_active:
            if is_closed(consumer):
                raise ConsumerStoppedError
            if is_reassigning(consumer):
                return {}
            fetched = self._take(consumer, batched)
            if unbatched:
                fetched.update(await take_records(consumer, unbatched, max_records))
            left = deadline - self.thread_loop.time()
            if fetched or left <= 0:
                return fetched
            await wait_for_fetch(consumer, left)
        return {}

    def _take(self, consumer: Any, partitions: set[Any]) -> dict[Any, list[Any]]:
        requested = [TopicPartition(*tp) for tp in partitions]
        batches = take_batches(consumer, requested, self.engine.config.fetch_bytes)
        return {TP(batch.topic, batch.partition): [batch] for batch in batches}

    def seek_all(self, positions: Mapping[Any, int]) -> None:
        """Continue reading at these offsets; skip partitions that were taken away."""
        consumer = self._ensure_consumer()
        for tp, offset in positions.items():
            place = TopicPartition(*tp)
            if place in consumer.assignment():
                consumer.seek(place, offset)

    def position_of(self, tp: Any) -> int | None:
        """Return where a partition is read next, None if unknown."""
        return position_of(self._ensure_consumer(), TopicPartition(*tp))

    async def confirmed(self) -> None:
        """Return once the group's coordinator has confirmed, after this call, our membership."""
        consumer: GroupMember = self._ensure_consumer()
        await consumer.confirmed()

    async def seek_committed(self, partitions: Collection[Any]) -> Any:
        """Seek some partitions to the group's committed offsets."""
        consumer = self._ensure_consumer()
        places = [TopicPartition(*tp) for tp in partitions]
        return await consumer.seek_to_committed(*places)

    async def show_positions(self, reports: Mapping[Any, Shown]) -> None:
        """Write the group's offsets, for displays of lag and of trouble."""
        consumer = self._ensure_consumer()
        await consumer.commit(
            {TopicPartition(*tp): OffsetAndMetadata(*position) for tp, position in reports.items()}
        )

    async def committed(self, tp: Any) -> int:
        """Return the group's committed offset of a partition, 0 if there is none."""
        offset: int | None = await self._ensure_consumer().committed(TopicPartition(*tp))
        return offset or 0
