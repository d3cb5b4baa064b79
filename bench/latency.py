"""Time from publishing a patient to reading its diagnosis: steady rate, labels, exactly once.

The patients are published and the diagnoses read as users do it (`agents.clients.client`), on the
embedded broker, through `hb worker` with all roles. A patient comes every hundredth of a second
and is labelled a second later. The clock runs from just before the patient is handed to the client
until the program has its committed diagnosis.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from agents.clients.client import Diagnoses, Publisher
from bench.pipeline.job import LABELS, LEARNERS, WIDTH, worker, write_settings
from bench.processes import await_ready, running
from streams.broker.reaper import temporary_broker
from streams.kafka.connection import admin_client, quiet_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import declared

RATE = 100.0
WARM_UP = 5.0
"""Seconds of warm-up, whose patients are not counted: processes are slow when they start."""
_LABEL_AFTER = 1.0
_LATEST = 10.0


def run(seconds: float, seed: int, tick: Callable[[], object]) -> dict[str, Any]:
    """Measure for that many seconds; `tick` is called every second."""
    quiet_client()
    with temporary_broker() as broker:
        times = asyncio.run(_measure(broker.address, seconds, seed, tick))
    p50, p90, p99 = np.percentile(times, [50, 90, 99]) * 1000
    return {
        "settings": {"patients_per_second": RATE, "seconds": seconds, "seed": seed},
        "figures": {
            "p50_ms": float(p50),
            "p90_ms": float(p90),
            "p99_ms": float(p99),
            "max_ms": max(times) * 1000,
            "patients": len(times),
        },
        "ratios": {},
    }


def steps(seconds: float) -> int:
    """Return how often `tick` will be called."""
    return int(WARM_UP + seconds)


async def _measure(
    address: str, seconds: float, seed: int, tick: Callable[[], object]
) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        folder = Path(name)
        settings = write_settings(folder, address, f"b{uuid4().hex[:8]}")
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))
        with running(worker(folder), folder):
            await await_ready(settings.worker.state)
            async with Publisher(settings) as publisher, Diagnoses(settings) as diagnoses:
                return await Stream(publisher, diagnoses, seed).run(seconds, tick)


class Stream:
    """Publishes patients at the rate, labels them, and times their diagnoses."""

    def __init__(self, publisher: Publisher, diagnoses: Diagnoses, seed: int) -> None:
        self._publisher, self._diagnoses = publisher, diagnoses
        self._random = np.random.default_rng(seed)

    async def run(self, seconds: float, tick: Callable[[], object]) -> list[float]:
        """Return the time that each patient took, without those of the warm-up."""
        loop = asyncio.get_running_loop()
        begin = loop.time() + 0.1
        async with asyncio.TaskGroup() as group:
            tasks = []
            for number in range(int((WARM_UP + seconds) * RATE)):
                await asyncio.sleep(begin + number / RATE - loop.time())
                tasks.append(group.create_task(self._one(self._patient())))
                if not number % int(RATE):
                    tick()
        return [task.result() for task in tasks[int(WARM_UP * RATE) :]]

    def _patient(self) -> Mapping[str, float]:
        values = self._random.random(WIDTH * len(LEARNERS)).tolist()
        return {f"f{j}": value for j, value in enumerate(values)}

    async def _one(self, features: Mapping[str, float]) -> float:
        name, label = uuid4().hex, LABELS[int(self._random.random() < 0.5)]
        start = time.perf_counter()
        waiting = asyncio.create_task(self._diagnoses.of(name, _LATEST))
        await self._publisher.publish(features, id=name)
        await waiting
        took = time.perf_counter() - start
        await asyncio.sleep(_LABEL_AFTER)
        await self._publisher.label(name, label)
        return took
