"""Teaching from history: paced by what is learned, published at once, and one patient at a time.

Each way has its own topics and its own `hb worker` on one broker, and the same patients, whose
labels are known. The rate is patients over the time from the first one sent to the last one
learned, the error rate that of their diagnoses. The first patients of each way are the same, so
that ways that take fewer can be compared on them.

    paced     `hb teach`
    at_once   everything is published as fast as the broker takes it
    one       the next patient is sent when the one before is learned; a tenth of the patients
    outage    the first half is taught paced, the second half is published while no worker runs:
              what a backlog is to an ensemble that knows something. Its figures are of that half
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from agents.clients.label_pace import LabelPace
from agents.clients.patient_files import TablePatients
from agents.clients.produce import Production, Trial
from agents.clients.topic_reader import TopicReader
from bench.pipeline.job import LABELS, LEARNERS, settings_file, worker
from bench.processes import await_ready, running
from schemas.reading import Reader
from schemas.records import Diagnosis
from settings.loading import load_settings
from settings.model import Settings
from streams.broker.reaper import temporary_broker
from streams.kafka.connection import admin_client, quiet_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared

WIDTH = 4
"""Features of a learner."""
WAYS = ("paced", "at_once", "one", "outage")

_TOML = """version = 1
name = "{name}"
labels = ["benign", "malignant"]
positive = "malignant"

[defaults]
feedback = "full"
cuts = 2
exploration = 0.01
backoff = 20
rules.committee = {{ kind = "committee", preset = "additive" }}

[ensemble]
mode = "stack"
options = {{ prior_mean = 1.0, prior_variance = 0.05 }}
fusion_timeout = "1d"

[broker]
bootstrap = "{address}"

[worker]
state = "{state}"
web_port = 0
"""


def steps() -> int:
    """Return how many ways are measured."""
    return len(WAYS)


def run(patients: int, seed: int, tick: Callable[[], object]) -> dict[str, Any]:
    """Measure every way."""
    quiet_client()
    history = drawn(patients, seed)
    figures: dict[str, float] = {}
    with temporary_broker() as broker:
        for way in WAYS:
            rate, wrong = asyncio.run(_measure(broker.address, way, history))
            figures[f"{way}_patients_per_second"] = rate
            figures[f"{way}_error_rate"] = float(wrong.mean())
            if way == "paced":
                few, half = patients // 10, patients // 2
                figures["paced_error_rate_of_first_tenth"] = float(wrong[:few].mean())
                figures["paced_error_rate_of_second_half"] = float(wrong[half:].mean())
            tick()
    return {
        "settings": {"patients": patients, "seed": seed, "partitions": 1},
        "figures": figures,
        "ratios": ratios(figures),
    }


def ratios(figures: dict[str, float]) -> dict[str, float]:
    """Return the paced way over each of the others."""
    pairs = {
        "rate_over_at_once": ("patients_per_second", "at_once_patients_per_second"),
        "rate_over_one": ("patients_per_second", "one_patients_per_second"),
        "errors_over_at_once": ("error_rate", "at_once_error_rate"),
        "errors_over_one": ("error_rate_of_first_tenth", "one_error_rate"),
        "errors_over_outage": ("error_rate_of_second_half", "outage_error_rate"),
    }
    return {
        name: figures[f"paced_{ours}"] / figures[theirs] for name, (ours, theirs) in pairs.items()
    }


@dataclass(frozen=True)
class History:
    """Past patients: ids, features, labels."""

    ids: list[str]
    columns: dict[str, list[float]]
    labels: list[str]

    def part(self, rows: slice) -> TablePatients:
        """Return some of them as a source."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return TablePatients("history", columns, self.labels[rows], self.ids[rows])


def drawn(count: int, seed: int) -> History:
    """Draw patients: the log-odds of being ill are a sum over all features of all learners."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, WIDTH * len(LEARNERS)))
    odds = rows @ rng.normal(0.0, 1.2, rows.shape[1])
    ill = rng.random(count) < 1 / (1 + np.exp(-odds))
    columns = {f"f{j}": rows[:, j].round(4).tolist() for j in range(rows.shape[1])}
    ids = [f"{number:016x}" for number in rng.integers(0, 2**63, count).tolist()]
    return History(ids, columns, [LABELS[int(k)] for k in ill])


def _settings(folder: Path, address: str) -> Settings:
    text = _TOML.format(name=f"b{uuid4().hex[:8]}", address=address, state=folder / "state")
    for i, learner in enumerate(LEARNERS):
        names = ", ".join(f'{{ name = "f{WIDTH * i + j}" }}' for j in range(WIDTH))
        text += f"\n[learners.{learner}]\nfeatures = [{names}]\n"
    settings_file(folder).write_text(text)
    return load_settings(settings_file(folder))


async def _measure(
    address: str, way: str, history: History
) -> tuple[float, "np.ndarray[Any, Any]"]:
    """Return the rate of a way, and which of its patients were diagnosed wrongly, in order."""
    count = len(history.ids)
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        folder = Path(name)
        settings = _settings(folder, address)
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))
        rows = slice(0, count // 10 if way == "one" else count)
        if way == "outage":
            rows = slice(count // 2, count)
            with running(worker(folder), folder):
                await await_ready(settings.worker.state)
                await _teach(settings, history.part(slice(0, rows.start)), "paced")
            await _publish(settings, history.part(rows))
        began = time.monotonic()
        with running(worker(folder), folder):
            await await_ready(settings.worker.state)
            if way == "outage":
                await _await_all(settings, count)
            else:
                began = time.monotonic()
                await _teach(settings, history.part(rows), way)
            seconds = time.monotonic() - began
        diagnosed = await _diagnoses(settings)
    pairs = zip(history.ids[rows], history.labels[rows], strict=True)
    wrong = np.array([diagnosed[patient] != label for patient, label in pairs])
    return len(wrong) / seconds, wrong


async def _teach(settings: Settings, source: TablePatients, way: str) -> None:
    pace = LabelPace(settings, strict=True)
    room: Callable[[], int] | None = pace.room
    gate = pace.wait
    if way == "at_once":
        room, gate = None, _nothing
    elif way == "one":
        room, gate = (lambda: 1), pace.finish
    production = Production(
        settings, source, Trial(history=True), notice=pace.note, gate=gate, room=room
    )
    async with pace:
        await production.run()
        await pace.finish()


async def _nothing() -> None:
    """Wait for nothing."""


async def _publish(settings: Settings, source: TablePatients) -> None:
    await Production(settings, source, Trial(history=True)).run()


async def _await_all(settings: Settings, count: int) -> None:
    """Wait until all patients are learned."""
    learned: set[bytes] = set()
    topic = Topics.of(settings).feedback(LEARNERS[0])
    async with TopicReader(settings, [topic], "start") as reader:
        while len(learned) < count:
            learned.update(record.key for record in await reader.read())


async def _diagnoses(settings: Settings) -> dict[str, str]:
    reader = Reader(Diagnosis)
    async with TopicReader(settings, [Topics.of(settings).diagnoses], "start") as topic:
        diagnoses = [
            record
            async for records in topic.present()
            for record in reader.read([raw.value for raw in records]).records
        ]
    return {record.id: record.label for record in diagnoses}
