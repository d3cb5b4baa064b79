"""`/metrics`: everything that a worker measures, in one registry of its own.

A scrape first refreshes the overview of the whole system, unless it is recent. If the broker does
not answer, the scrape still succeeds: the state's figures are then those of the last overview,
whose age is among them, and what this process measured itself is always current.
"""

import asyncio
import contextlib
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from agents.agent_metrics import PROCESS, PipelineObserver
from agents.monitor.state_metrics import AGE, STATE, StateCollector
from agents.monitor.watch import Watch
from settings.errors import HbError
from streams.engine.tasks.task_metrics import ENGINE, observe
from streams.faust.app import EngineApp

ALL = (*STATE, AGE, *PROCESS, *ENGINE)
"""Every metric; docs/metrics.md explains each."""
_PATIENCE = 2.0
"""How long a scrape waits for the broker; Prometheus gives up after ten seconds."""


def register(app: EngineApp, watch: Watch) -> CollectorRegistry:
    """Measure an application that has not started yet, and serve what is measured."""
    registry = CollectorRegistry(auto_describe=False)
    observe(registry, app.engine)
    app.engine.observers.listeners.append(PipelineObserver(registry))
    registry.register(StateCollector(watch))

    @app.page("/metrics", name="metrics")
    async def metrics(view: Any, request: Any) -> Any:
        with contextlib.suppress(HbError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await watch.refresh()
        encode, kind = choose_encoder(request.headers.get("Accept", ""))
        return view.bytes(encode(registry), headers={"Content-Type": kind})

    return registry
