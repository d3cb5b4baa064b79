"""A worker: the process that runs some or all agents of an ensemble, until it is told to stop."""

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence

from agents import ensemble_learner, local_learner
from streams.app import EngineApp, create_app
from streams.connection import admin_client, await_broker
from streams.errors import InputError
from streams.settings import Settings
from streams.tasks.processor import AgentSpec
from streams.topic_admin import compare, find
from streams.topics import ENSEMBLE, declared

_log = logging.getLogger(__name__)


def roles(settings: Settings) -> tuple[str, ...]:
    """Return every role that the settings lead to: `local:<ll>` for each learner, `ensemble`."""
    return (*(f"local:{name}" for name in settings.learners), ENSEMBLE)


def specs(settings: Settings, wanted: Sequence[str] = ()) -> list[AgentSpec]:
    """Return the agents of the wanted roles, of all roles if none is named."""
    known = roles(settings)
    for role in wanted:
        if role not in known:
            raise InputError(f"there is no role {role}; the settings lead to: {', '.join(known)}")
    return [_spec(settings, role) for role in known if not wanted or role in wanted]


def _spec(settings: Settings, role: str) -> AgentSpec:
    if role == ENSEMBLE:
        return ensemble_learner.spec(settings)
    return local_learner.spec(settings, role.removeprefix("local:"))


def worker_app(settings: Settings, wanted: Sequence[str] = ()) -> EngineApp:
    """Return the application of a worker, ready to start."""
    app = create_app(settings)
    for spec in specs(settings, wanted):
        app.add_agent(spec)
    app.finalize()
    return app


async def run(
    settings: Settings,
    wanted: Sequence[str] = (),
    *,
    started: Callable[[EngineApp], None] = lambda _: None,
) -> None:
    """Run a worker until SIGINT or SIGTERM; then commit what is processed and leave the group."""
    app = worker_app(settings, wanted)
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
