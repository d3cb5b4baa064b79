"""Exactly once under faults: workers and brokers are killed, paused and bounced under load.

Three brokers, two workers, a steady stream; faults follow a schedule determined by a seed. At the
end every input must have exactly one answer, and the state must equal a recomputation.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from aiokafka import AIOKafkaProducer

from bench.faults import verdict as check
from bench.faults import worker as faults_worker
from bench.faults.fault_plan import Event, Fault, Plan, schedule
from bench.faults.injection import FaultInjection, Say, carried_out
from bench.faults.worker import AGENT, config
from settings.errors import HbError
from streams.broker import EmbeddedBroker
from streams.kafka.connection import admin_client
from streams.kafka.security import client_arguments
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topic

_IDS = 20_000
_TURN = 0.05
_FIRST_WITHIN = 300.0
_SETTLE = 300.0
"""In seconds, far more than it should take: after this long it will not happen any more."""


def run(plan: Plan, seed: int, say: Say, cluster: EmbeddedBroker | None = None) -> dict[str, Any]:
    """Inject the faults and judge the outcome; with no cluster given, start one."""
    return carried_out(_Run, plan, seed, say, cluster)


class _Run:
    def __init__(self, cluster: EmbeddedBroker, plan: Plan, folder: Path, say: Say) -> None:
        self._plan, self._folder, self._say = plan, folder, say
        self._broker = cluster.settings()
        self._prefix = f"f{uuid4().hex[:8]}."
        self._injection = FaultInjection(cluster, plan, folder, say, self._command)
        self._fed = 0

    def _command(self, number: int, folder: Path) -> Sequence[str]:
        program = [sys.executable, "-m", faults_worker.__name__]
        address = self._injection.address_of(number)
        broker = self._broker.model_copy(update={"bootstrap": address}).model_dump_json()
        timeouts = str(self._plan.session_timeout), str(self._plan.request_timeout)
        return [*program, broker, self._prefix, str(folder), *timeouts]

    async def run(self, seed: int) -> dict[str, Any]:
        events = schedule(self._plan, seed)
        self._say(f"seed {seed}: {len(events)} faults, {self._plan.records} records")
        await self._create_topics()
        async with self._injection.running(seed):
            await self._flow(events)
            await self._settle()
        return await self._report(seed)

    # The stream.

    async def _flow(self, events: list[Event]) -> None:
        """Feed steadily for as long as the faults take, then the rest at once."""
        faults = asyncio.create_task(self._strike(events))
        expected = sum(event.rest + 8 for event in events) + 10
        rate = self._plan.records / expected
        producer = AIOKafkaProducer(
            **client_arguments(self._broker), enable_idempotence=True, linger_ms=5
        )
        async with producer:
            while self._fed < self._plan.records:
                turn = self._plan.records if faults.done() else self._fed + int(rate * _TURN) + 1
                await self._feed(producer, min(turn, self._plan.records))
                await asyncio.sleep(_TURN)
        await faults

    async def _feed(self, producer: Any, until: int) -> None:
        for number in range(self._fed, until):
            patient = number * 7919 % _IDS
            await producer.send(
                self._prefix + "in",
                orjson.dumps({"id": patient, "seq": number}),
                key=b"%d" % patient,
                partition=patient % self._plan.partitions,
            )
        self._fed = until

    async def _settle(self) -> None:
        """Wait until every record fed has its answer."""
        deadline = time.monotonic() + _SETTLE
        while time.monotonic() < deadline:
            outputs = len(await check.read_all(self._broker, self._prefix + "out"))
            if outputs >= self._plan.records:
                return
            self._injection.check()
            await asyncio.sleep(1.0)
        raise HbError(f"only {outputs} of {self._plan.records} records were answered in the end")

    async def _strike(self, events: list[Event]) -> None:
        await self._first_outputs()
        await self._injection.strike_all(events, lambda: f"{self._fed} records fed")

    async def _first_outputs(self) -> None:
        deadline = time.monotonic() + _FIRST_WITHIN
        while not await check.read_all(self._broker, self._prefix + "out"):
            if time.monotonic() > deadline:
                raise HbError(f"the workers answered nothing within {_FIRST_WITHIN:g} s")
            await asyncio.sleep(0.5)

    async def _create_topics(self) -> None:
        timeouts = self._plan.session_timeout, self._plan.request_timeout
        conf = config(self._broker, self._prefix, self._folder, *timeouts)
        copies = min(3, self._plan.brokers)
        safe = {"min.insync.replicas": str(max(1, copies - 1))}
        stamped = {**safe, "message.timestamp.type": "LogAppendTime"}
        names = {
            self._prefix + "in": safe,
            self._prefix + "out": stamped,
            conf.deadletters: safe,
            conf.changelog(AGENT): {**safe, "cleanup.policy": "compact"},
            conf.shared_changelog(AGENT): {**safe, "cleanup.policy": "compact"},
        }
        async with admin_client(self._broker) as admin:
            topics = [
                Topic(name, self._plan.partitions, copies, settings)
                for name, settings in names.items()
            ]
            await create(admin, topics)

    # The verdict.

    async def _report(self, seed: int) -> dict[str, Any]:
        topics = ("in", "out", f"{AGENT}.changelog", f"{AGENT}.shared")
        streams = [await check.read_all(self._broker, self._prefix + topic) for topic in topics]
        verdict = check.judge(*streams)
        outputs = streams[1]
        logs = self._injection.log
        return {
            "settings": {
                "seed": seed,
                "records": self._plan.records,
                "faults": len(self._injection.history),
            },
            "figures": {
                "lost": verdict.lost,
                "double": verdict.double,
                "differing": verdict.differing,
                "fenced": logs.count("ProducerFenced"),
                "reopened": logs.count("opens again in"),
                **self._injection.network_faults,
                **self._injection.disk_faults,
                "session_timeout_seconds": self._plan.session_timeout,
                "kill_gap_seconds": self._gap(outputs, Fault.KILL_WORKER),
                "pause_gap_seconds": self._gap(outputs, Fault.PAUSE_WORKER),
                "broker_kill_gap_seconds": self._gap(outputs, Fault.KILL_BROKER),
                "broker_bounce_gap_seconds": self._gap(outputs, Fault.BOUNCE_BROKER),
                "clean_stop_gap_seconds": _longest(outputs, self._injection.handovers),
            },
            "ratios": {},
        }

    def _gap(self, outputs: list[check.Record], fault: Fault) -> float:
        return _longest(
            outputs, [(a, b) for injected, a, b in self._injection.history if injected is fault]
        )


def _longest(outputs: list[check.Record], windows: list[tuple[float, float]]) -> float:
    return max((check.longest_gap(outputs, *window) for window in windows), default=0.0)
