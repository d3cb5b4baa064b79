"""Patients published per second from one process, as users do it, beside the Kafka client alone.

    one at a time   `publish`, each awaited before the next: a round trip to the broker each
    at once         `publish`, all awaited together
    many            `publish_many`
    aiokafka        the client library alone, all records handed over at once: what there is to gain

On the embedded broker, which also takes the time of its own. Every patient is a record for each of
three learners of ten features.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from aiokafka import AIOKafkaProducer

from agents.clients.client import Publisher, new_id
from agents.clients.splitting import Splitter
from bench.pipeline.job import write_settings
from settings.model import Settings
from streams.broker.reaper import temporary_broker
from streams.clock import wall
from streams.kafka.connection import admin_client, quiet_client
from streams.kafka.security import client_arguments
from streams.kafka.topic_admin import create
from streams.kafka.topics import declared

Patients = list[dict[str, object]]
_ONE_AT_A_TIME = 500
"""Patients for the slow way, which would take too long with all of them."""


def run(patients: int, rounds: int, seed: int, tick: Callable[[], object]) -> dict[str, Any]:
    """Measure; the best of some rounds counts, and `tick` is called after each."""
    quiet_client()
    with temporary_broker() as broker:
        rates = asyncio.run(_measure(broker.address, patients, rounds, seed, tick))
    return {
        "settings": {"patients": patients, "rounds": rounds, "seed": seed},
        "figures": {f"{name}_per_second": rate for name, rate in rates.items()},
        "ratios": {"many_to_aiokafka": rates["many"] / rates["aiokafka"]},
    }


async def _measure(
    address: str, patients: int, rounds: int, seed: int, tick: Callable[[], object]
) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        settings = write_settings(Path(name), address, f"b{uuid4().hex[:8]}")
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))
        drawn = _drawn(settings, patients, seed)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for kind, rate in (await _round(settings, drawn)).items():
                best[kind] = max(best.get(kind, 0.0), rate)
            tick()
        return best


def _drawn(settings: Settings, count: int, seed: int) -> Patients:
    columns = Splitter(settings).columns
    rows = np.random.default_rng(seed).random((count, len(columns)))
    return [dict(zip(columns, row, strict=True)) for row in rows.tolist()]


async def _round(settings: Settings, patients: Patients) -> dict[str, float]:
    few = patients[:_ONE_AT_A_TIME]
    async with Publisher(settings) as publisher:

        async def one_at_a_time() -> None:
            for patient in few:
                await publisher.publish(patient)

        async def at_once() -> None:
            await asyncio.gather(*map(publisher.publish, patients))

        return {
            "one_at_a_time": await _rate(one_at_a_time, len(few)),
            "at_once": await _rate(at_once, len(patients)),
            "many": await _rate(lambda: publisher.publish_many(patients), len(patients)),
            "aiokafka": await _alone(settings, patients),
        }


async def _alone(settings: Settings, patients: Patients) -> float:
    """Send the same records with nothing but the client library."""
    splitter = Splitter(settings)
    ready = [splitter.one(new_id(), patient, wall()) for patient in patients]
    producer = AIOKafkaProducer(**client_arguments(settings.broker), enable_idempotence=True)
    await producer.start()

    async def send() -> None:
        sent = [
            await producer.send(topic, value) for batch in ready for topic, value in batch.items()
        ]
        await asyncio.gather(*sent)

    try:
        return await _rate(send, len(patients))
    finally:
        await producer.stop()


async def _rate(work: Callable[[], Awaitable[object]], count: int) -> float:
    began = time.perf_counter()
    await work()
    return count / (time.perf_counter() - began)
