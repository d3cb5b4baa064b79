"""The job of the pipeline's benchmarks: settings, patients, and the expected outputs.

Three local learners of ten features each and two constant rules, as in the paper's experiments;
weighted majority; a label for every patient. A patient comes every millisecond of the stream.
Labels have the times of their patients: that keeps about a thousand of them waiting, because tasks
that catch up keep their inputs within about a second (`streams.engine.tasks.inbox`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiokafka import AIOKafkaProducer

from agents.clients.splitting import Splitter
from agents.worker_process import command
from schemas.records import Label
from schemas.writing import encode_all
from settings.loading import load_settings
from settings.model import Settings
from settings.render import broker_section
from settings.sections.broker import BrokerSettings
from streams.kafka.security import client_arguments
from streams.kafka.topics import Topics

LEARNERS = ("imaging", "cytology", "history")
LABELS = ("benign", "malignant")
WIDTH = 10
"""Features of a learner."""
CUTS = 2
HORIZON = 1_000_000
EXPLORATION = 0.005
SERVED = ("worker.metrics=true", "worker.console=true")
"""Settings of a worker that can be watched."""

_BATCH_BYTES = 256 << 10

_HEAD = """version = 1
name = "{name}"
labels = ["benign", "malignant"]
positive = "malignant"

[defaults]
horizon = {horizon}
cuts = {cuts}
exploration = {exploration}
rules.benign = {{ kind = "constant", label = "benign" }}
rules.malignant = {{ kind = "constant", label = "malignant" }}

[ensemble]
# Workers that start with a backlog do not reach each patient at the same time.
fusion_timeout = "1d"

{broker}
[worker]
state = "{state}"
web_port = 0
metrics = false
console = false
"""


def write_settings(
    folder: Path, broker: str | BrokerSettings, name: str, *overrides: str, extra: str = ""
) -> Settings:
    """Write the settings of the job to a folder; return them with overrides applied.

    The broker is an address, or a whole section. `extra` goes into the file, after the keys of
    `[worker]`.
    """
    section = BrokerSettings(bootstrap=broker) if isinstance(broker, str) else broker
    text = _HEAD.format(
        name=name,
        broker=broker_section(section),
        state=folder / "state",
        horizon=HORIZON,
        cuts=CUTS,
        exploration=EXPLORATION,
    )
    text += extra
    for i, learner in enumerate(LEARNERS):
        names = [f"f{WIDTH * i + j}" for j in range(WIDTH)]
        features = ", ".join(
            f'{{ name = "{feature}", low = 0.0, high = 1.0 }}' for feature in names
        )
        text += f"\n[learners.{learner}]\nfeatures = [{features}]\n"
    file = settings_file(folder)
    file.write_text(text)
    return load_settings(file, overrides)


def settings_file(folder: Path) -> Path:
    """Return the path of a job's settings."""
    return folder / "ensemble.toml"


def worker(folder: Path, *overrides: str) -> list[list[str]]:
    """Return the command of a worker with all roles, for the settings of a folder."""
    return [command(settings_file(folder), overrides)]


@dataclass(frozen=True, slots=True)
class Patients:
    """Patients as records: keys, times, and the values for each topic."""

    keys: list[bytes]
    times: list[int]
    instances: dict[str, list[bytes]]
    labels: list[bytes]

    def __len__(self) -> int:
        return len(self.keys)


def drawn(rng: np.random.Generator, count: int) -> tuple[dict[str, list[float]], list[str]]:
    """Draw patients: ill where the first features of the learners are large, with some noise."""
    columns = rng.random((WIDTH * len(LEARNERS), count)).round(6)
    ill = columns[::WIDTH].mean(axis=0) + 0.1 * rng.standard_normal(count) > 0.5
    named = {f"f{j}": column.tolist() for j, column in enumerate(columns)}
    return named, [LABELS[i] for i in ill.astype(int).tolist()]


def patients(settings: Settings, count: int, seed: int, start: int) -> Patients:
    """Return patients as records, one every millisecond from `start` on."""
    rng = np.random.default_rng(seed)
    named, truth = drawn(rng, count)
    ids = [f"{number:016x}" for number in rng.integers(0, 2**63, count).tolist()]
    times = list(range(start, start + count))
    labels = [Label(*fields) for fields in zip(ids, truth, times, strict=True)]
    split = Splitter(settings).many(ids, named, start)
    keys = [name.encode() for name in ids]
    return Patients(keys, times, dict(split.values), encode_all(labels))


async def publish(settings: Settings, cohort: Patients) -> None:
    """Write patients and labels to partition 0 of their topics, in large batches."""
    producer = AIOKafkaProducer(
        **client_arguments(settings.broker), max_batch_size=_BATCH_BYTES, acks="all"
    )
    async with producer:
        for topic, values in cohort.instances.items():
            await _write(producer, topic, zip(cohort.times, cohort.keys, values, strict=True))
        labels = zip(cohort.times, cohort.keys, cohort.labels, strict=True)
        await _write(producer, Topics.of(settings).labels, labels)


async def _write(producer: Any, topic: str, records: Iterable[tuple[int, bytes, bytes]]) -> None:
    batch = producer.create_batch()
    for at, key, value in records:
        if batch.append(timestamp=at, key=key, value=value) is None:
            await producer.send_batch(batch, topic, partition=0)
            batch = producer.create_batch()
            batch.append(timestamp=at, key=key, value=value)
    await (await producer.send_batch(batch, topic, partition=0))


def outputs(topics: Topics) -> Sequence[str]:
    """Return the topics on which a patient ends: its diagnosis, and feedback to each learner."""
    return [topics.diagnoses, *(topics.feedback(name) for name in topics.learners)]
