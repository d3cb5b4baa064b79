"""A worker: the process that runs some or all agents of an ensemble, until it is told to stop."""

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence

from agents.monitor import metrics_page as metrics
from agents.monitor.console import server as console
from agents.monitor.watch import Watch
from agents.roles import specs
from settings.errors import InputError
from settings.model import Settings
from streams.engine.tasks import garbage as heap
from streams.faust.app import EngineApp, create_app
from streams.kafka.admin import compare, find
from streams.kafka.connection import admin_client, await_broker
from streams.kafka.topics import declared

_log = logging.getLogger(__name__)


def worker_app(settings: Settings, wanted: Sequence[str] = ()) -> EngineApp:
    """Return the application of a worker, ready to start."""
    app = create_app(settings)
    for spec in specs(settings, wanted):
        app.add_agent(spec)
    watched = settings.worker.metrics or settings.worker.console
    watch = app.beside(Watch(settings)) if watched else None
    if watch is not None:
        app.engine.observers.listeners.append(watch.own)
    if watch is not None and settings.worker.metrics:
        metrics.register(app, watch)
    app.finalize()
    if watch is not None and settings.worker.console:
        console.install(app, settings, watch)
    return app


async def run(
    settings: Settings,
    wanted: Sequence[str] = (),
    *,
    made: Callable[[EngineApp], None] = lambda _: None,
    started: Callable[[EngineApp], None] = lambda _: None,
) -> None:
    """Run a worker until SIGINT or SIGTERM; then commit what is processed and leave the group.

    `made` gets the application before it starts, `started` after.
    """
    heap.calm()
    app = worker_app(settings, wanted)
    made(app)
    await await_broker(settings.broker)
    await _need_topics(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await app.start()
    try:
        started(app)
        await stop.wait()
        _log.info("stopping")
    finally:
        await app.stop()


async def _need_topics(settings: Settings) -> None:
    async with admin_client(settings.broker) as admin:
        topics = declared(settings)
        found = await find(admin, [topic.name for topic in topics])
    missing = [topic.name for topic in topics if topic.name not in found]
    if missing:
        raise InputError(
            f"{len(missing)} topics are missing, {missing[0]} among them: run hb topics create"
        )
    for difference in compare(topics, found):
        _log.warning("topic is not as declared: %s", difference)
