"""From settings to a Faust application whose agents get batches and commit exactly once."""

import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import faust

from settings.errors import BrokerError
from settings.model import Settings
from streams.engine.api import AgentSpec
from streams.engine.config import EngineConfig, engine_config
from streams.engine.state.private import make_private
from streams.engine.tasks.commit import Hook, no_hook
from streams.engine.tasks.group import TaskGroup
from streams.faust import readiness
from streams.faust.schema import BatchSchema
from streams.faust.web import Web, page_tls
from streams.kafka.client_name import client_name
from streams.kafka.connection import await_broker, quiet_client
from streams.kafka.security import located

Reach: TypeAlias = Callable[[], Awaitable[None]]
"""Returns once the broker answers, or raises BrokerError; at once if waiting would not help."""

Companion = TypeVar("Companion", bound=AbstractAsyncContextManager[Any])
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The address of a worker's pages; without a host they are not served."""

    host: str | None = "127.0.0.1"
    port: int = 6066
    tls: ssl.SSLContext | None = None


LOOPBACK = WebConfig()


class EngineApp(faust.App):
    """A Faust application with the tasks of its batch agents."""

    engine: TaskGroup
    pages: WebConfig
    reach: Reach | None = None
    patience: float = 10.0
    companions: tuple[AbstractAsyncContextManager[Any], ...] = ()

    def _new_web(self) -> Any:
        return Web(self, self.pages.host or "127.0.0.1", self.pages.port, self.pages.tls)

    async def on_first_start(self) -> None:
        """Wait for the broker before anything else starts; give up only if waiting cannot help."""
        if self.reach is not None:
            await self._await_broker(self.reach)
        await super().on_first_start()
        for companion in self.companions:
            await self.add_async_context(companion)

    def beside(self, companion: Companion) -> Companion:
        """Keep something open while the application runs; call this before it starts."""
        self.companions = (*self.companions, companion)
        return companion

    async def _await_broker(self, reach: Reach) -> None:
        while True:
            started = time.monotonic()
            try:
                await reach()
                break
            except BrokerError as error:
                if time.monotonic() - started < self.patience / 2:
                    raise  # raised without waiting: a retry cannot help
                _log.warning("%s; still trying", error)

    def _create_directories(self) -> None:
        make_private(self.engine.config.state)
        super()._create_directories()

    def add_agent(self, spec: AgentSpec) -> None:
        """Add a batch agent, which only hands batches over to its processor."""
        self.engine.add(spec)
        topic = self.topic(*spec.inputs, schema=BatchSchema(), acks=False)

        async def hand_over(stream: Any) -> None:
            consumer: Any = self.consumer
            async for event in stream.events():
                await consumer.deliver(event.value)

        self.agent(topic, name=spec.name)(hand_over)


def create_app(settings: Settings) -> EngineApp:
    """Return the application for these settings; add agents with `add_agent`, then start it."""
    worker = settings.worker
    web = WebConfig(worker.web_host, worker.web_port, page_tls(worker))
    app = build_app(engine_config(settings), web)
    broker = located(settings.broker)
    app.reach = lambda: await_broker(broker)
    app.patience = broker.patience.total_seconds()
    return app


def build_app(
    config: EngineConfig, web: WebConfig = LOOPBACK, *, hook: Hook = no_hook
) -> EngineApp:
    """Return an application from the engine's own configuration."""
    quiet_client()
    app = EngineApp(
        config.app,
        broker=[f"hb://{address}" for address in _addresses(config)],
        broker_client_id=client_name(),
        broker_request_timeout=max(config.request_timeout, config.session_timeout),
        broker_session_timeout=config.session_timeout,
        broker_heartbeat_interval=config.heartbeat,
        consumer_auto_offset_reset="earliest",
        datadir=str(config.state / "faust"),
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        autodiscover=False,
        web_enabled=web.host is not None,
    )
    app.engine = TaskGroup(config, (), hook=hook)
    app.engine.crashed = lambda error: app.add_future(app.crash(error))
    app.pages = web
    if web.host is not None:
        readiness.register(app, app.engine)
    return app


def _addresses(config: EngineConfig) -> list[str]:
    servers = config.client["bootstrap_servers"]
    return servers.split(",") if isinstance(servers, str) else list(servers)
