"""One session of a task: from its opening to the first error or to its closing.

A session owns everything that must be discarded together: the transactional producer, the store,
the tables and the processor in memory. After any error whose outcome is not certain the session
ends, and a new one starts from what the broker says was committed.

Two loops share it. One processes batches as they come and accumulates the results; the other
commits them, one transaction after the other. So the next batches are decoded, processed and
encoded while a transaction is under way, and transactions grow with the load.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from aiokafka.errors import KafkaError

from settings.errors import BrokerError
from streams.clock import wall
from streams.engine.api import AgentSpec, ProcessingError, Processor, TaskContext
from streams.engine.cancellation import in_thread
from streams.engine.changelogs.changelog import Changelogs
from streams.engine.changelogs.origin import Origin
from streams.engine.changelogs.restore import Restored, restore
from streams.engine.config import EngineConfig
from streams.engine.errors import FinalError
from streams.engine.observer import At, Observer, Opened
from streams.engine.outbox import Outbox
from streams.engine.state.store import Store, StoreError
from streams.engine.state.table import Table, reading
from streams.engine.tasks.commit import Hook, Step, Work, commit
from streams.engine.tasks.inbox import Inbox
from streams.engine.tasks.record_times import AHEAD, MISSING, RecordTimes
from streams.engine.tasks.source import Source
from streams.kafka.batch import Batch
from streams.kafka.client.producer import TransactionalProducer
from streams.kafka.client.topic_facts import topic_ids


class Session:
    """A task while it is open. Create it with `streams.engine.tasks.opening.open_session`."""

    def __init__(
        self,
        config: EngineConfig,
        spec: AgentSpec,
        partition: int,
        *,
        source: Source,
        hook: Hook,
        observer: Observer,
        producer: TransactionalProducer,
        store: Store,
    ) -> None:
        self.spec, self.partition = spec, partition
        self.restored = Restored()
        self.positions: dict[str, int] = {}
        self.committed: dict[str, int] = {}
        self.times: dict[str, int] = {}
        """When the last committed record of each input was written, in milliseconds."""
        self.commits = self.records = 0
        self.last_commit = time.monotonic()
        self._config, self._source, self._hook = config, source, hook
        self._observer = observer
        self._producer, self._store = producer, store
        self._tables: list[Table] = list(spec.tables())
        self._changelogs = Changelogs(
            self._tables,
            store,
            partition,
            config.changelog(spec.name),
            config.shared_changelog(spec.name),
            secret=config.secret_changelog(spec.name),
            largest=config.changelog_bytes,
            origin=Origin(config.app, meaning=spec.meaning),
            signer=spec.signer(),
        )
        self._processor: Processor | None = None
        self._inbox = self._new_inbox(dict.fromkeys(spec.inputs, 0))
        self._times: dict[str, int] = {}
        self._record_times = RecordTimes()
        self._pending = 0
        self._pending_since: float | None = None
        self._flying_since: float | None = None
        self._outbox = self._new_outbox()
        self._arrived, self._piled, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._urgent = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._paused = False
        self._interruption: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def restore(self, others: Any) -> None:
        """Bring store and tables up to date, and create the processor."""
        name = self._config.transactional_id(self.spec.name, self.partition)
        self.restored = await restore(self._changelogs, self._config, name, self.spec.inputs)
        await in_thread(self._load)
        stored = self._store.positions
        starts = self.restored.starts
        self.positions = {t: max(stored.get(t, 0), starts[t]) for t in self.spec.inputs}
        self.committed = dict(self.positions)
        self._inbox = self._new_inbox(self.positions)
        tables = {table.name: table for table in self._tables}
        context = TaskContext(self.spec.name, self.partition, tables, others)
        self._processor = await in_thread(lambda: self.spec.processor(context))
        if not self._changelogs.signed:
            self._pile(0)

    def _load(self) -> None:
        with reading(f"the state of {self.spec.name}/{self.partition}"):
            for table in self._tables:
                table.load(self._store)

    def opened(self, seconds: float) -> Opened:
        """Return the report for observers that it is open."""
        at, read = At(dict(self.positions), self._changelogs.offsets), self.restored.records
        rows = {table.name: partial(self._store.items, table.name) for table in self._tables}
        return Opened(self.spec.name, self.partition, seconds, read, at, rows)

    # Accepting batches.

    def wants(self, topic: str) -> bool:
        """Tell whether there is room for more of a topic."""
        return not self._paused and self._inbox.has_room(topic)

    def deliver(self, batch: Batch) -> bool:
        """Accept a batch; False if it was refused because it does not follow the previous one."""
        if self._paused:
            return False
        batch = self._record_times.corrected(batch, wall())
        if not self._inbox.put(batch, time.monotonic()):
            return False
        for name, times in zip((AHEAD, MISSING), self._record_times.counted(), strict=True):
            self._outbox.notes.count(name, times)
        self._arrived.set()
        return True

    def expected(self) -> dict[str, int]:
        """Return, per topic, the offset of the next batch that `deliver` accepts."""
        return self._inbox.expected

    def skip(self, topic: str, offset: int) -> None:
        """Expect a topic to continue at a later offset: what came before is gone."""
        self._inbox.skip(topic, offset)

    def _new_inbox(self, positions: dict[str, int]) -> Inbox:
        return Inbox(
            dict(positions),
            self._config.pace(len(self.spec.inputs)),
            lambda topic: self._source.end_of(topic, self.partition),
            leader=self.spec.leader,
            now=time.monotonic(),
        )

    # Work.

    async def run(self) -> None:
        """Process and commit until an error or until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._process_loop())
                group.create_task(self._commit_loop())
                group.create_task(self._await_interruption())
                group.create_task(self._watch_topics())
        except BaseExceptionGroup as errors:
            first = errors.exceptions[0]
            raise first from first.__cause__

    async def _watch_topics(self) -> None:
        """End the session if one of its topics was recreated: its offsets mean nothing there."""
        while True:
            await asyncio.sleep(self._config.topics_every)
            with contextlib.suppress(KafkaError, BrokerError):  # asked again later
                topics = [*self._changelogs.topics, *self.spec.inputs]
                self._changelogs.check_topics_now(await topic_ids(self._producer, topics))

    def interrupt(self, error: Exception) -> None:
        """End it with an error from outside."""
        if not self._interruption.done():
            self._interruption.set_result(error)

    async def _await_interruption(self) -> None:
        raise await self._interruption

    async def _process_loop(self) -> None:
        while True:
            await self._room.wait()
            batch = None
            if not self._paused and not self._better_later():
                batch = self._inbox.take(time.monotonic(), wall())
            if batch is None:
                await self._wait_for_batch()
            else:
                self._process(batch)
                await asyncio.sleep(0)

    def _better_later(self) -> bool:
        """Tell whether to wait for the current commit: more may come before the next can begin."""
        return self._flying_since is not None and self._inbox.records < self._config.ahead_records

    async def _wait_for_batch(self) -> None:
        self._arrived.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.tick):
                await self._arrived.wait()
            return
        if not self._paused and self._room.is_set() and self._caught_up():
            self._call(lambda out: self._need().tick(wall(), out))
            self._call(lambda _: self._need().save())
            still = time.monotonic() - self.last_commit > self._config.rewrite_every
            if still or self._outbox.records or any(table.dirty for table in self._tables):
                self._pile(0)

    def _process(self, batch: Batch) -> None:
        self._call(lambda out: self._need().process(batch, out))
        self.positions[batch.topic] = batch.next
        if len(batch):
            self._times[batch.topic] = batch.timestamps[-1]
            self._pile(len(batch))
        if self._inbox.has_room(batch.topic, 0.5):
            self._source.wake()

    def _call(self, work: Callable[[Outbox], None]) -> None:
        try:
            work(self._outbox)
        except (FinalError, StoreError):
            raise  # not the processor's fault
        except Exception as error:
            raise ProcessingError(f"{type(error).__name__} in agent {self.spec.name}") from error

    def _pile(self, records: int) -> None:
        self._pending += records
        if self._pending_since is None:
            self._pending_since = time.monotonic()
        if self._pending >= self._config.max_records:
            self._room.clear()
        if self._outbox.urgent or self._paused or not self._room.is_set():
            self._urgent.set()
        self._idle.clear()
        self._piled.set()

    def _caught_up(self) -> bool:
        for topic, position in self.positions.items():
            end = self._source.end_of(topic, self.partition)
            if end is None or position < end:
                return False
        return not (len(self._inbox) or self._inbox.moving(time.monotonic(), wall()))

    async def _commit_loop(self) -> None:
        while True:
            if self._store.unscrubbed:
                await in_thread(self._store.scrub)
            await self._piled.wait()
            await self._await_company()
            async with asyncio.timeout(self._config.commit_timeout):
                await self._commit()

    async def _await_company(self) -> None:
        """Let work that is not urgent wait a little for urgent work."""
        if not self._urgent.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.linger):
                    await self._urgent.wait()

    async def _commit(self) -> None:
        # 1. Take. No other coroutine may run between these lines.
        self._call(lambda _: self._need().save())
        work = Work(
            self._outbox,
            {table.name: table.drain() for table in self._tables},
            dict(self.positions),
            dict(self._times),
            self._pending,
            self._pending_since or time.monotonic(),
        )
        self._outbox, self._pending, self._pending_since = self._new_outbox(), 0, None
        self._flying_since = work.since
        self._piled.clear()
        self._urgent.clear()
        self._room.set()
        await self._hook(Step.TAKEN)
        # 2 to 7.
        begun = time.monotonic()
        await commit(work, self._producer, self._changelogs, self._hook)
        # 8. Done.
        for table in self._tables:
            table.settle()
        self.committed, self.times = dict(work.positions), dict(work.times)
        self.commits += 1
        self.records += work.records
        self.last_commit = time.monotonic()
        self._flying_since = None
        self._arrived.set()
        spent, offsets = (begun, self.last_commit), self._changelogs.offsets
        self._observer.committed(work.told(self.spec.name, self.partition, spent, offsets))
        if not self._pending and not self._piled.is_set():
            self._idle.set()
        await self._hook(Step.DONE)

    @property
    def oldest(self) -> float | None:
        """Return since when the oldest processed record has waited for its commit, if any does."""
        return self._flying_since if self._flying_since is not None else self._pending_since

    def pause(self) -> None:
        """Stop processing; what has been processed is still committed."""
        self._paused = True
        self._urgent.set()
        self._inbox.clear(self.positions)

    def resume(self) -> None:
        """Accept batches again, from the position that `expected` returns."""
        self._paused = False

    async def flush(self) -> None:
        """Wait until everything processed is committed."""
        await self._idle.wait()

    async def close(self, *, clean: bool) -> None:
        """Release the producer and the folder."""
        self._paused = True
        try:
            if clean:
                async with asyncio.timeout(self._config.flush_timeout):
                    await self._producer.stop()
            else:
                await self._producer.abandon()
        except TimeoutError:
            await self._producer.abandon()
        finally:
            self._store.close()

    def _need(self) -> Processor:
        assert self._processor is not None, "restore comes first"  # noqa: S101  # for mypy
        return self._processor

    def _new_outbox(self) -> Outbox:
        dead = self.spec.deadletters or self._config.deadletters
        return Outbox(self._producer.create_batch, self.partition, dead)
