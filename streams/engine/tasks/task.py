"""A task: one partition of one agent, kept alive across sessions.

    OPENING ──> RUNNING ──> CLOSED
       ^           │
       └─ WAITING <┘ (an error whose outcome is unknown, or a bug that is tried again)
             └─────> FAILED (a bug, or state that cannot be read: it would fail again)

After an error of the broker or of the disk the task retries for as long as it lasts, with growing
pauses, and recovers by itself when the cause is gone. It opens again only after the coordinator of
the consumer group has confirmed that this worker still holds the partition: opening fences the
partition's current writer, and that must not be the rightful owner. After a bug the task retries a
few times and then stops, loudly, with the positions where they were; other tasks continue.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiokafka.errors import ProducerFenced

from settings.errors import BrokerError, HbError
from streams.engine.api import AgentSpec, ProcessingError
from streams.engine.config import EngineConfig
from streams.engine.errors import FinalError
from streams.engine.observer import SILENT, Observer
from streams.engine.state.table import StateError
from streams.engine.tasks import garbage
from streams.engine.tasks.commit import Hook, no_hook
from streams.engine.tasks.opening import open_session
from streams.engine.tasks.session import Session
from streams.engine.tasks.source import Source
from streams.kafka.batch import Batch

_ABOUT_DATA = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors whose text may contain values of records: only where they happened is reported."""
_log = logging.getLogger(__name__)


SILENCE = "the group's coordinator does not answer; others may hold the partition by now"


class Phase(Enum):
    """What a task is doing."""

    OPENING = "opening"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task as its worker reports it."""

    agent: str
    partition: int
    phase: Phase
    reason: str
    commits: int
    records: int
    reopenings: int
    positions: dict[str, int]
    oldest: float | None
    """Seconds for which the oldest processed record has waited for its commit."""
    ends: dict[str, int | None] = field(default_factory=dict)
    """Where each input ends, as far as known."""
    times: dict[str, int] = field(default_factory=dict)
    """When the last committed record of each input was written, in milliseconds."""
    written: dict[str, int | None] = field(default_factory=dict)
    """Where each input ends, including transactions that are not decided yet."""


class Task:
    """Opens sessions for one partition of one agent, one after the other, until it is closed."""

    def __init__(
        self,
        config: EngineConfig,
        spec: AgentSpec,
        partition: int,
        source: Source,
        *,
        hook: Hook = no_hook,
        observer: Observer = SILENT,
        others: Callable[[], Awaitable[Any]] | None = None,
        unconfirmed: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec, self.partition = spec, partition
        self.phase, self.reason = Phase.OPENING, ""
        self.reopenings = -1
        self.session: Session | None = None
        self._config, self._source, self._hook, self._others = config, source, hook, others
        self._observer, self._unconfirmed = observer, unconfirmed
        self._bugs = self._commits = self._records = 0
        self._pause = config.backoff
        self._life: asyncio.Task[None] | None = None
        self._leaving = False

    @property
    def name(self) -> str:
        """Return agent and partition, for the log."""
        return f"{self.spec.name}/{self.partition}"

    def start(self) -> "asyncio.Task[None]":
        """Open the task in the background; return what runs it."""
        self._life = asyncio.create_task(self._live(), name=f"task {self.name}")
        return self._life

    async def _live(self) -> None:
        while not self._leaving and self.phase is not Phase.FAILED:
            try:
                await self._one_session()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever ends a session is handled here
                await self._after(error)

    async def _one_session(self) -> None:
        self.phase = Phase.OPENING
        self.reopenings += 1
        started = time.monotonic()
        session = await open_session(
            self._config,
            self.spec,
            self.partition,
            source=self._source,
            hook=self._hook,
            observer=self._observer,
            others=None if self._others is None else await self._others(),
        )
        self.session = session
        garbage.settle(again=self.reopenings > 0)
        try:
            if self._leaving:  # the Kafka client swallows a cancellation that comes while it closes
                return
            self._say_open(session, time.monotonic() - started)
            self.phase, self.reason = Phase.RUNNING, ""
            self._source.wake()
            await session.run()
        finally:
            self._account(session)
            self.session = None
            self._observer.closed(self.spec.name, self.partition)
            # Cancelled means closed by `close`, which has flushed; anything else is an error.
            await asyncio.shield(session.close(clean=self._leaving))

    def _say_open(self, session: Session, seconds: float) -> None:
        self._observer.opened(session.opened(seconds))
        _log.info(
            "task %s is open at %s after %.2f s; %d changelog records read",
            self.name,
            session.positions,
            seconds,
            session.restored.records,
        )

    def _account(self, session: Session) -> None:
        self._commits += session.commits
        self._records += session.records
        if session.commits:
            self._bugs, self._pause = 0, self._config.backoff

    async def _after(self, error: Exception) -> None:
        """Decide after an error whether to wait and open again, or to stop."""
        self.reason = describe(error)
        if isinstance(error, ProcessingError):
            self._bugs += 1
        final = isinstance(error, StateError | FinalError) or self._bugs > self._config.retries
        self._observer.interrupted(self.spec.name, self.partition, self.reason, final)
        if final:
            self.phase = Phase.FAILED
            # The cause of a bug may contain values of a record, so report only where it happened.
            _log.error(
                "task %s stops: %s; its positions stay where they were", self.name, self.reason
            )
            return
        self.phase = Phase.WAITING
        pause = self._pause
        self._pause = min(2 * self._pause, self._config.max_backoff)
        _log.warning("task %s opens again in %.1f s: %s", self.name, pause, self.reason)
        await asyncio.gather(asyncio.sleep(pause), self._await_confirmation())

    async def _await_confirmation(self) -> None:
        """Wait until it is confirmed that this worker holds the partition."""
        try:
            async with asyncio.timeout(self._config.session_timeout):
                await self._source.confirmed()
        except TimeoutError:
            self.reason = SILENCE
            self._unconfirmed()
            await self._source.confirmed()

    # Called by the group.

    @property
    def opening(self) -> bool:
        """Tell whether the task is on its way to a session."""
        return self.session is None and self.phase in (Phase.OPENING, Phase.WAITING)

    def wants(self, topic: str) -> bool:
        """Tell whether batches of a topic can be delivered now."""
        session = self.session
        return self.phase is Phase.RUNNING and session is not None and session.wants(topic)

    def give_up(self) -> None:
        """Close the session; the task opens again when the group's coordinator has answered."""
        if self.session is not None:
            self.session.interrupt(BrokerError(SILENCE))

    def deliver(self, batch: Batch) -> bool:
        """Accept a batch; False if it was refused."""
        return self.session is not None and self.session.deliver(batch)

    async def pause(self) -> None:
        """Stop processing and commit what has been processed, within a time limit."""
        session = self.session
        if session is None:
            return
        session.pause()
        try:
            async with asyncio.timeout(self._config.flush_timeout):
                await session.flush()
        except TimeoutError:
            _log.warning(
                "task %s could not commit before the rebalance; it will be redone", self.name
            )

    async def resume(self) -> None:
        """Continue after `pause`."""
        session = self.session
        if session is not None:
            await self._source.rewind(self.partition, session.expected())
            session.resume()
            self._source.wake()

    async def close(self) -> None:
        """Commit what has been processed, and release everything."""
        await self.pause()
        self._leaving = True
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait([self._life])
        self.phase = Phase.CLOSED

    def status(self) -> TaskStatus:
        """Return how the task is doing."""
        session = self.session
        oldest = None if session is None else session.oldest
        return TaskStatus(
            self.spec.name,
            self.partition,
            self.phase,
            self.reason,
            self._commits + (session.commits if session else 0),
            self._records + (session.records if session else 0),
            max(self.reopenings, 0),
            dict(session.committed) if session else {},
            None if oldest is None else time.monotonic() - oldest,
            {t: self._source.end_of(t, self.partition) for t in session.committed}
            if session
            else {},
            dict(session.times) if session else {},
            {t: self._source.written_to(t, self.partition) for t in session.committed}
            if session
            else {},
        )


def describe(error: BaseException) -> str:
    """Return an error as one sentence without values of records."""
    if isinstance(error, ProcessingError):
        cause = error.__cause__
        where = _where(cause) if cause is not None else ""
        return f"{error}{where}"
    if isinstance(error, HbError):
        return str(error)
    if isinstance(error, ProducerFenced):
        return "another producer writes under the task's name (ProducerFenced)"
    if isinstance(error, TimeoutError):
        return "the broker did not answer in time"
    if isinstance(error, _ABOUT_DATA):
        return f"{type(error).__name__}{_where(error)}"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f" at {code.co_filename}:{trace.tb_lineno} ({code.co_name})"
