"""`/metrics`: everything that a worker measures, in one registry of its own.

A scrape first refreshes the overview of the whole system, unless it is recent. If the broker does
not answer, the scrape still succeeds: the state's figures are then those of the last overview,
whose age is among them, and what this process measured itself is always current.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agents.agent_metrics import PROCESS, PipelineObserver
from agents.monitor.state_metrics import AGE, STATE, StateCollector
from agents.monitor.watch import Watch
from settings.errors import HbError
from settings.model import Settings
from streams.engine.meters import EnsembleRegistry, Spec, filled
from streams.engine.tasks.task_metrics import ENGINE, observe
from streams.faust.app import EngineApp

RUNBOOK = Spec(
    "hb_runbook_info",
    "gauge",
    "Always 1; its url is where alerts and dashboards link to (worker.runbook).",
    ("url",),
)
ALL = (*STATE, AGE, *PROCESS, *ENGINE, RUNBOOK)
"""Every metric; docs/metrics.md explains each."""
_PATIENCE = 2.0
"""How long a scrape waits for the broker; Prometheus gives up after ten seconds."""


class _Runbook(Collector):
    def __init__(self, url: str) -> None:
        self._url = url

    def collect(self) -> Iterator[Metric]:
        yield filled(RUNBOOK, [((self._url,), 1.0)])


def register(app: EngineApp, watch: Watch, settings: Settings) -> EnsembleRegistry:
    """Measure an application that has not started yet, and serve what is measured."""
    registry = EnsembleRegistry(settings.name)
    registry.register(_Runbook(settings.worker.runbook))
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
