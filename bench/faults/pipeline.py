"""The whole pipeline under faults: workers and brokers are killed while patients flow.

Two workers with all roles, three brokers, three replicas of every topic. Patients are published as
`hb produce` does it, each label half a second after its patient. At the end `hb audit` recomputes
everything from the topics, and nothing may be lost, double or different.

On secure brokers the workers, the publisher and the operator who watches and audits have a log-in
each, with the rights of their roles and no others.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from agents.clients.label_delays import fixed
from agents.clients.patient_files import Patients
from agents.clients.produce import Production, Trial
from agents.monitor.overview import Overview
from agents.monitor.watch import look
from audit.end_to_end import Report, audit
from bench.faults.fault_plan import Fault, Plan, schedule, seconds
from bench.faults.injection import FaultInjection, Say, carried_out
from bench.log_ins import OPERATOR, PUBLISHER, WORKER, as_user, broker_of, grant
from bench.pipeline.job import drawn, worker, write_settings
from settings.errors import BrokerError, HbError
from settings.model import Settings
from streams.broker import USER, EmbeddedBroker
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import declared

_LABEL_AFTER = 0.5
_FIRST_WITHIN = 300.0
_SETTLE = 300.0
_PAUSE = 1.0


class Drawn:
    """Patients drawn from a seed, as a source to publish."""

    name, texts, labelled, grouped, id_column = "drawn patients", False, True, False, "id"

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed = count, seed

    def chunks(self) -> Iterator[Patients]:
        """Draw them all."""
        columns, labels = drawn(np.random.default_rng(self._seed), self._count)
        ids = [f"p{number:08d}" for number in range(self._count)]
        yield Patients(range(self._count), columns, ids, labels)


def run(plan: Plan, seed: int, say: Say, cluster: EmbeddedBroker | None = None) -> dict[str, Any]:
    """Inject the faults and audit the outcome; with no cluster given, start one."""
    return carried_out(_Run, plan, seed, say, cluster)


class _Run:
    def __init__(self, cluster: EmbeddedBroker, plan: Plan, folder: Path, say: Say) -> None:
        self._plan, self._folder, self._say = plan, folder, say
        self._settings = self._write(cluster)
        self._operator = as_user(self._settings, cluster, OPERATOR)
        self._publisher = as_user(self._settings, cluster, PUBLISHER)
        self._administrator = as_user(self._settings, cluster, USER)
        self._injection = FaultInjection(cluster, plan, folder, say, self._command)

    def _write(self, cluster: EmbeddedBroker) -> Settings:
        copies = min(3, self._plan.brokers)
        return write_settings(
            self._folder,
            broker_of(cluster, WORKER),
            f"f{uuid4().hex[:8]}",
            extra=f'session_timeout = "{self._plan.session_timeout:g}s"\n'
            f"[topics]\npartitions = {self._plan.partitions}\nreplication = {copies}\n",
        )

    def _command(self, number: int, folder: Path) -> Sequence[str]:
        address = self._injection.address_of(number)
        overrides = [f"worker.state={folder}", f"broker.bootstrap={address}"]
        if self._plan.network:
            overrides.append(f"broker.request_timeout={self._plan.request_timeout:g}s")
        return worker(self._folder, *overrides)[0]

    async def run(self, seed: int) -> dict[str, Any]:
        events = schedule(self._plan, seed)
        self._say(f"seed {seed}: {len(events)} faults, {self._plan.records} patients")
        if self._plan.secure:
            await grant(self._administrator)
        async with admin_client(self._operator.broker) as admin:
            await create(admin, declared(self._operator))
        began = time.monotonic()
        async with self._injection.running(seed):
            production = self._production(seed, sum(seconds(event, self._plan) for event in events))
            async with asyncio.TaskGroup() as group:
                group.create_task(production.run())
                first = lambda overview: bool(overview.scores.labelled)  # noqa: E731
                await _until(self._operator, first, _FIRST_WITHIN, self._injection)
                fed = lambda: f"{production.done.patients} patients published"  # noqa: E731
                await self._injection.strike_all(events, fed)
                if self._plan.damages:
                    await self._injection.wreck()
            await until_learned(self._operator, self._plan.records, self._injection)
        return self._report(seed, time.monotonic() - began, await audit(self._operator))

    def _production(self, seed: int, lasting: float) -> Production:
        trial = Trial(rate=self._plan.records / lasting, delay=fixed(_LABEL_AFTER), seed=seed)
        return Production(self._publisher, Drawn(self._plan.records, seed), trial)

    def _report(self, seed: int, took: float, audited: Report) -> dict[str, Any]:
        history, logs = self._injection.history, self._injection.log
        figures = audited.figures()
        wanted = ("lost", "double", "differing", "instances", "predictions", "diagnoses", "labels")
        kills = [fault for fault, _, _ in history if fault is Fault.KILL_BROKER]
        return {
            "settings": {"seed": seed, "patients": self._plan.records, "faults": len(history)},
            "figures": {
                **{name: figures[name] for name in wanted if name in figures},
                "broker_kills": len(kills),
                "fenced": logs.count("ProducerFenced"),
                "reopened": logs.count("opens again in"),
                **self._injection.network_faults,
                **self._injection.disk_faults,
                "seconds": took,
            },
            "ratios": {},
            "findings": audited.report()["findings"],
        }


async def until_learned(settings: Settings, labels: int, injection: FaultInjection) -> None:
    """Wait until so many labels are learned by everybody and everything is read."""

    def is_done(overview: Overview) -> bool:
        learned = [overview.scores.labelled, *overview.scores.learned.values()]
        return all(count >= labels for count in learned) and not any(
            t.behind for t in overview.tasks
        )

    await _until(settings, is_done, _SETTLE, injection)


async def _until(
    settings: Settings,
    holds: Callable[[Overview], bool],
    within: float,
    injection: FaultInjection,
) -> None:
    deadline = time.monotonic() + within
    while not holds(overview := await _patiently(lambda: look(settings), deadline)):
        injection.check()
        if time.monotonic() > deadline:
            raise HbError(f"after {within:g} s it is not done: {_state(overview)}")
        await asyncio.sleep(_PAUSE)


def _state(overview: Overview) -> str:
    learned = {"ensemble": overview.scores.labelled, **overview.scores.learned}
    behind = {f"{task.agent}/{task.partition}": task.lag for task in overview.tasks if task.behind}
    counts = {name: count for name, count in overview.counts.items() if count}
    return f"labels learned {learned}, behind {behind}, counted {counts}"


async def _patiently(work: Callable[[], Awaitable[Overview]], deadline: float) -> Overview:
    """Look at the state; a broker may be down at the moment."""
    while True:
        try:
            return await work()
        except BrokerError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_PAUSE)
