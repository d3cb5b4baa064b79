"""A soak: steady load for minutes or hours, with everything that happens to a running system.

Two workers with all roles, three brokers. Patients come at a steady rate through the Python client;
most labels come a second later, some late, some never, some twice and different. Strangers write
odd records on the topics that users may write to. One worker is killed every few minutes, brokers
are bounced, and once all workers are restarted one after the other. Meanwhile memory, open files,
disk and the time to a diagnosis are watched; at the end `hb audit` recomputes everything.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents.clients.client import Diagnoses, Publisher
from audit.end_to_end import Report, audit
from bench.faults.fault_plan import Event, Fault, Plan
from bench.faults.injection import FaultInjection, Say, carried_out
from bench.faults.pipeline import until_learned
from bench.hostile.benchmark import site
from bench.hostile.clients import by_aiokafka
from bench.hostile.odd_records import odd_records
from bench.pipeline.job import LABELS, LEARNERS, WIDTH, worker, write_settings
from bench.soak.curves import Curves
from settings.errors import HbError
from settings.model import Settings
from streams.broker import EmbeddedBroker
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import declared

PLAN = Plan(records=0, kills=0, partitions=2)
RATE = 40.0
ODD_EVERY = 5.0
"""Seconds between batches of odd records."""
ODD_EACH = 20
BOUNDS = ("ensemble.max_remembered=2000", "ensemble.max_amendable=1000")
"""What a worker remembers of settled instances is bounded by count, and by default at a million: a
soak would show it filling up. These bounds are reached within minutes, so that a line that still
rises is a leak."""
_KILL_EVERY, _BOUNCE_EVERY = 150.0, 270.0
_LOOK_EVERY = 5.0
_LATEST = 120.0
_PROMPT, _LATE = 1.0, 20.0
_QUIET = 30.0
"""Patients published this soon after a fault are not timed: recovery is what `faults` measures."""


def run(minutes: float, seed: int, say: Say) -> dict[str, Any]:
    """Soak for that many minutes and report."""
    plan = replace(PLAN, records=int(60 * minutes * RATE))
    return carried_out(_Soak, plan, seed, say, None)


def events(seconds: float, seed: int) -> list[Event]:
    """Return the faults: kills of one worker, broker bounces, one rolling restart, evenly spread.

    >>> [event.fault.name for event in events(600, 1)][:3]
    ['KILL_WORKER', 'BOUNCE_BROKER', 'KILL_WORKER']
    """
    draw = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    at = [(n * _KILL_EVERY, Fault.KILL_WORKER, 1) for n in range(1, int(seconds / _KILL_EVERY))]
    at += [
        (n * _BOUNCE_EVERY, Fault.BOUNCE_BROKER, draw.randrange(PLAN.brokers))
        for n in range(1, int(seconds / _BOUNCE_EVERY))
    ]
    at.append((seconds * 0.75, Fault.ROLLING_RESTART, 0))
    ordered = sorted(at, key=lambda event: event[0])
    ends = [when for when, _, _ in ordered[1:]] + [seconds]
    return [
        Event(fault, target, max(1.0, end - when))
        for (when, fault, target), end in zip(ordered, ends, strict=True)
    ]


class _Soak:
    def __init__(self, cluster: EmbeddedBroker, plan: Plan, folder: Path, say: Say) -> None:
        self._plan, self._folder, self._say = plan, folder, say
        self._settings = self._write(cluster)
        self._injection = FaultInjection(cluster, plan, folder, say, self._command)
        self._curves = Curves()
        self._faulted: list[float] = []
        self._labelled = 0

    def _write(self, cluster: EmbeddedBroker) -> Settings:
        extra = f"[topics]\npartitions = {self._plan.partitions}\nreplication = 3\n"
        name = f"s{uuid4().hex[:8]}"
        return write_settings(self._folder, cluster.address, name, *BOUNDS, extra=extra)

    def _command(self, _number: int, folder: Path) -> Sequence[str]:
        overrides = (f"worker.state={folder}", "worker.metrics=true", "worker.console=true")
        return worker(self._folder, *BOUNDS, *overrides)[0]

    async def run(self, seed: int) -> dict[str, Any]:
        seconds = self._plan.records / RATE
        async with admin_client(self._settings.broker) as admin:
            await create(admin, declared(self._settings))
        async with self._injection.running(seed):
            self._began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                load = group.create_task(self._load(seed))
                helpers = [
                    group.create_task(self._strangers(seed)),
                    group.create_task(self._look()),
                ]
                await self._warm()
                await self._faults(events(seconds - self._now, seed))
                await load
                for task in helpers:
                    task.cancel()
            await until_learned(self._settings, self._labelled, self._injection)
        return self._report(seed, seconds, await audit(self._settings))

    @property
    def _now(self) -> float:
        return time.monotonic() - self._began

    async def _warm(self) -> None:
        while not self._labelled:  # noqa: ASYNC110 - the first label is the sign that all works
            await asyncio.sleep(0.1)

    async def _faults(self, faults: Sequence[Event]) -> None:
        # The first fault has its time too.
        await asyncio.sleep(faults[0].rest / 2 if faults else 0)
        for event in faults:
            self._faulted.append(self._now)
            await self._injection.strike_all([event], lambda: f"{self._labelled} labels published")

    async def _load(self, seed: int) -> None:
        draw, loop = random.Random(seed), asyncio.get_running_loop()  # noqa: S311
        async with Publisher(self._settings) as publisher, Diagnoses(self._settings) as diagnoses:
            begin = loop.time()
            async with asyncio.TaskGroup() as group:
                for number in range(self._plan.records):
                    await asyncio.sleep(begin + number / RATE - loop.time())
                    group.create_task(self._patient(publisher, diagnoses, draw))

    async def _patient(
        self, publisher: Publisher, diagnoses: Diagnoses, draw: random.Random
    ) -> None:
        values, ill, fate = (
            [draw.random() for _ in range(WIDTH * len(LEARNERS))],
            0.0,
            draw.random(),
        )
        ill = sum(values[::WIDTH]) / len(LEARNERS) + draw.gauss(0, 0.1)
        label, name, at = LABELS[ill > 0.5], uuid4().hex, self._now
        started = time.perf_counter()
        features: Mapping[str, float] = {f"f{j}": value for j, value in enumerate(values)}
        waiting = asyncio.create_task(diagnoses.of(name, _LATEST))
        await publisher.publish(features, id=name)
        await waiting
        if not any(at - _QUIET < fault < self._now for fault in self._faulted):
            self._curves.latencies.append((at, time.perf_counter() - started))
        if fate < 0.01:  # a label that never comes
            return
        await asyncio.sleep(_LATE if fate < 0.03 else _PROMPT)
        await publisher.label(name, label)
        self._labelled += 1
        if fate > 0.99:  # somebody says something else afterwards
            await publisher.label(name, LABELS[label == LABELS[0]])

    async def _strangers(self, seed: int) -> None:
        here = site(self._settings)
        ours = {here.topics["instances"], here.topics["labels"]}
        for number in range(1 << 30):
            drawn = odd_records(here, 10 * ODD_EACH, 1000 * seed + number)
            records = [record for _, record in drawn if record.topic in ours][:ODD_EACH]
            await by_aiokafka(self._settings.broker.bootstrap, records, self._plan.partitions)
            await asyncio.sleep(ODD_EVERY)

    async def _look(self) -> None:
        while True:
            await asyncio.to_thread(
                self._curves.look, self._now, self._injection.pids, self._folder
            )
            await asyncio.sleep(_LOOK_EVERY)

    def _report(self, seed: int, seconds: float, audited: Report) -> dict[str, Any]:
        figures, curves = audited.figures(), self._curves
        if not curves.latencies:
            raise HbError("no patient was timed: choose more minutes")
        third = seconds / 3
        return {
            "settings": {"minutes": seconds / 60, "seed": seed, "patients_per_second": RATE},
            "figures": {
                **{name: figures[name] for name in ("lost", "double", "differing")},
                "patients": self._plan.records,
                "labels": self._labelled,
                "faults": len(self._faulted),
                "memory_mb_per_hour": curves.growth("memory_mb"),
                "open_files_per_hour": curves.growth("open_files"),
                "disk_mb_last": curves.disk[-1][1],
                "p99_ms_first": curves.p99(0.0, third),
                "p99_ms_last": curves.p99(seconds - third, seconds),
            },
            "ratios": {},
            "curves": curves.plain(max(_LOOK_EVERY, seconds / 60)),
            "findings": audited.report()["findings"],
        }
