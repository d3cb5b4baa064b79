"""A worker: the process that runs some or all agents of an ensemble until it is stopped."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence

from agents.monitor import metrics_page, page_guard, runbook_page
from agents.monitor.console import server as console
from agents.monitor.watch import Watch
from agents.roles import specs
from agents.rule_watchdog import RuleWatchdog
from agents.stored_state import check_state
from agents.worker_pages import announced, url
from settings.errors import HbError, InputError
from settings.model import Settings
from streams.engine.tasks import garbage
from streams.engine.tasks.task import describe
from streams.faust.app import EngineApp, create_app
from streams.kafka.connection import BrokerAwayError, admin_client, await_broker
from streams.kafka.topic_admin import compare, find
from streams.kafka.topics import declared

_AGAIN = 1.0
_STOP_WITHIN = 30.0
"""Seconds that a crashed worker gets to release its resources."""
_RULES = 0.8
"""The fraction of the session time-out that one call of a rule may take: no heartbeat is sent
during the call, and after the full time-out the group gives the worker's partitions to others."""
_log = logging.getLogger(__name__)


class WorkerError(HbError):
    """An essential part of the worker has ended."""

    exit_code = 5


def worker_app(settings: Settings, roles: Sequence[str] = ()) -> EngineApp:
    """Return the application of a worker, ready to start."""
    app = create_app(settings)
    for spec in specs(settings, roles):
        app.add_agent(spec)
    watched = settings.worker.metrics or settings.worker.console
    watch = app.beside(Watch(settings)) if watched else None
    if watch is not None:
        app.engine.observers.listeners.append(watch.own)
    if watch is not None and settings.worker.metrics:
        metrics_page.register(app, watch, settings)
    app.finalize()
    page_guard.install(app, settings.worker)
    runbook_page.install(app)
    if watch is not None and settings.worker.console:
        console.install(app, settings, watch)
    return app


class Worker:
    """Runs the application of some roles until `stop`, SIGINT or SIGTERM.

    `prepare` gets the application before it starts.
    """

    def __init__(
        self,
        settings: Settings,
        roles: Sequence[str] = (),
        *,
        prepare: Callable[[EngineApp], None] = lambda _: None,
    ) -> None:
        self._settings, self._roles, self._prepare = settings, roles, prepare
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Commit what has been processed, leave the group and exit."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until told to stop; raise WorkerError if any part crashes."""
        garbage.calm()
        app = worker_app(self._settings, self._roles)
        self._prepare(app)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        if not await self._unless_stopped(self._await_topics()):
            return
        patience = _RULES * self._settings.worker.session_timeout.total_seconds()
        try:
            with RuleWatchdog(patience):
                if await self._unless_stopped(app.start()):
                    with self._announced(app):
                        await self._unless_stopped(app.wait_until_stopped())
        finally:
            await _end(app)
        if app.crashed:
            raise WorkerError(f"the worker crashed: {describe(_reason(app))}")

    async def _unless_stopped(self, work: Awaitable[object]) -> bool:
        """Wait for `work`; abandon it and return False if the worker is told to stop."""
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            for task in (doing, stopping):
                task.cancel()

    async def _await_topics(self) -> None:
        """Check topics and state; retry if a broker stops answering on the way."""
        while True:
            await await_broker(self._settings.broker)
            try:
                await self._check_topics()
            except BrokerAwayError as error:
                _log.warning("cannot check topics and state now: %s; trying again", error)
                await asyncio.sleep(_AGAIN)
            else:
                return

    async def _check_topics(self) -> None:
        async with admin_client(self._settings.broker) as admin:
            topics = declared(self._settings)
            existing = await find(admin, [topic.name for topic in topics])
        sizes = {name: topic.partitions for name, topic in existing.items()}
        agents = [spec.name for spec in specs(self._settings, self._roles)]
        await check_state(self._settings, sizes, agents)
        missing = [topic.name for topic in topics if topic.name not in existing]
        if missing:
            raise InputError(
                f"{len(missing)} topics are missing, {missing[0]} among them: run hb topics create"
            )
        for difference in compare(topics, existing):
            _log.warning("topic is not as declared: %s", difference)

    @contextlib.contextmanager
    def _announced(self, app: EngineApp) -> Iterator[None]:
        """Announce the address of the pages, in the log and to other processes."""
        agents, served = list(app.engine.specs), self._settings.worker.console
        address = getattr(app.web, "address", None)
        page = "" if address is None else url(*address, tls=app.pages.tls is not None)
        where = f", {'console' if served else 'pages'} at {page}" if page else ""
        _log.info("worker runs %s%s", ", ".join(agents), where)
        with contextlib.ExitStack() as stack:
            if page:
                state = self._settings.worker.state
                stack.enter_context(announced(state, agents, page, console=served))
            yield


async def _end(app: EngineApp) -> None:
    """Stop the application; one that has crashed may fail to stop."""
    _log.info("stopping")
    if not app.crashed:
        await app.stop()
        return
    try:
        async with asyncio.timeout(_STOP_WITHIN):
            await app.stop()
    except Exception as error:  # noqa: BLE001  # the crash itself is reported instead
        _log.warning("the worker could not stop cleanly: %s", type(error).__name__)


def _reason(app: EngineApp) -> BaseException:
    return app.crash_reason or HbError("a part of it has ended")
