"""Runs whole ensembles inside a test: settings, topics, a worker, patients and labels."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiokafka import AIOKafkaProducer
from engine_kit import PATIENCE, committed

from agents.monitor.overview import Overview
from agents.monitor.watch import Watch
from agents.worker import worker_app
from settings.loading import load_settings
from settings.model import Settings
from streams.faust.app import EngineApp
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared

TOML = """
version = 1
name = "{name}"
labels = ["benign", "malignant"]
positive = "malignant"

[defaults]
horizon = 2000
cuts = 2
exploration = 0.01

[defaults.rules.benign]
kind = "constant"
label = "benign"

[defaults.rules.malignant]
kind = "constant"
label = "malignant"

[learners.a]
features = [{{ name = "x", low = 0.0, high = 1.0 }}, {{ name = "y", low = 0.0, high = 1.0 }}]

[learners.b]
feedback = "full"
features = [{{ name = "z", low = 0.0, high = 1.0 }}]

[learners.c]
feedback = "full"
features = [{{ name = "x", low = 0.0, high = 1.0 }}, {{ name = "z", low = 0.0, high = 1.0 }}]
rules.lr.kind = "bayes"
rules.benign.kind = "constant"
rules.benign.label = "benign"

[ensemble]
mode = "wm"
fusion_timeout = "60s"
label_ttl = "1h"

[broker]
bootstrap = "{address}"

[worker]
state = "{state}"
web_port = 0
"""


def settings(folder: Path, address: str, name: str, *overrides: str) -> Settings:
    file = folder / "ensemble.toml"
    file.write_text(TOML.format(name=name, address=address, state=folder / "state"))
    return load_settings(file, overrides)


def patients(n: int, seed: int = 0) -> tuple[list[str], dict[str, np.ndarray], list[str]]:
    """Return ids, features and labels: a patient is ill where x + z is large."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.random((3, n))
    ill = x + z + 0.1 * rng.standard_normal(n) > 1.1
    ids = [f"p{i:06d}" for i in range(n)]
    return ids, {"x": x, "y": y, "z": z}, ["malignant" if sick else "benign" for sick in ill]


async def publish(
    address: str,
    topic: str,
    records: Iterable[tuple[str, Mapping[str, Any] | bytes]],
    times: Iterable[int | None] | None = None,
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=address, linger_ms=5)
    await producer.start()
    try:
        for (key, record), at in zip(records, times or itertools.repeat(None), strict=False):
            value = record if isinstance(record, bytes) else msgspec.json.encode(record)
            await producer.send(topic, value, key=key.encode(), timestamp_ms=at)
        await producer.flush()
    finally:
        await producer.stop()


async def arrive(
    config: Settings,
    ids: Sequence[str],
    features: Mapping[str, Any],
    times: Sequence[int] | None = None,
) -> None:
    """Publish the patients to every learner, with the current time or with these times."""
    topics = Topics.of(config)
    for name, learner in config.learners.items():
        names = [feature.name for feature in learner.features]
        rows = zip(*(features[feature].tolist() for feature in names), strict=True)
        records = [
            (patient, {"v": 1, "id": patient, "x": list(row), "at": 1_700_000_000_000})
            for patient, row in zip(ids, rows, strict=True)
        ]
        await publish(config.broker.bootstrap, topics.instances(name), records, times)


async def label(
    config: Settings, ids: Sequence[str], labels: Sequence[str], times: Sequence[int] | None = None
) -> None:
    records = [
        (name, {"v": 1, "id": name, "label": word, "at": 1_700_000_000_000})
        for name, word in zip(ids, labels, strict=True)
    ]
    await publish(config.broker.bootstrap, Topics.of(config).labels, records, times)


async def read(config: Settings, topic: str) -> list[dict[str, Any]]:
    """Return all committed records of a topic."""
    committed_records = await committed(config.broker.bootstrap, topic)
    return [msgspec.json.decode(record.value) for record in committed_records]


async def await_raw(config: Settings, topic: str, n: int) -> list[Any]:
    """Wait for n committed records with any content, and return all that are there."""
    async with asyncio.timeout(PATIENCE):
        while len(records := await committed(config.broker.bootstrap, topic)) < n:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # brokers send no notifications
    return records


async def dead_letters(config: Settings) -> list[Any]:
    """Return all dead letters as records, those of all agents."""
    topics = Topics.of(config).deadletters
    return [r for topic in topics for r in await committed(config.broker.bootstrap, topic)]


async def await_letters(config: Settings, n: int) -> list[Any]:
    """Wait for n dead letters, and return all that are there."""
    async with asyncio.timeout(PATIENCE):
        while len(letters := await dead_letters(config)) < n:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # brokers send no notifications
    return letters


async def await_count(config: Settings, topic: str, n: int) -> list[dict[str, Any]]:
    """Wait for n committed records, and return all that are there."""
    return [msgspec.json.decode(record.value) for record in await await_raw(config, topic, n)]


async def await_state(config: Settings, holds: Callable[[Overview], object]) -> Overview:
    """Wait until a condition holds for the committed state of the whole system; return it."""
    async with asyncio.timeout(PATIENCE), Watch(config) as watch:
        while not holds(overview := await watch.refresh(0)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # brokers send no notifications
    return overview


def learned(overview: Overview, n: int) -> bool:
    """Tell whether the ensemble and every learner have learned n labels and none is behind.

    The ends of topics are read before the positions, so "none is behind" may be true a moment too
    early; the count of learned labels cannot be.
    """
    labels = {overview.scores.labelled, *overview.scores.learned.values()}
    return labels == {n} and not any(task.behind for task in overview.tasks)


@contextlib.asynccontextmanager
async def running(config: Settings, *roles: str) -> AsyncIterator[EngineApp]:
    """Run a worker in this process."""
    app = worker_app(config, roles)
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def create_topics(config: Settings) -> None:
    async with admin_client(config.broker) as admin:
        await create(admin, declared(config))
