"""Odd records of every kind on every topic, from three clients, among good patients.

Two runs on one broker, each with its own topics and worker. In both, patients and odd records are
written at the same time; in the clean run the odd ones go to topics that are never read. So both
cost the machine the same to write, and the difference is what the worker does with them.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents.clients.label_delays import fixed
from agents.clients.produce import Production, Trial
from agents.monitor.watch import look
from bench.faults.pipeline import Drawn
from bench.hostile.clients import by_aiokafka, by_confluent, by_kcat
from bench.hostile.odd_records import KINDS, Odd, Site, odd_records
from bench.hostile.verdict import Found, judge, misused, rate, read_back
from bench.pipeline.job import LABELS, LEARNERS, WIDTH, worker, write_settings
from bench.processes import Programs, running
from settings.errors import HbError
from settings.model import Settings
from streams.broker.reaper import temporary_broker
from streams.clock import wall
from streams.kafka.connection import admin_client, quiet_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared

PARTITIONS = 2
_LABEL_AFTER = 0.5
_STAMPED = {"message.timestamp.type": "LogAppendTime"}
_PATIENCE = 240.0
_PAUSE = 0.5
_EXTRA = f"""
[topics]
partitions = {PARTITIONS}

[ensemble.context]
features = [{{ name = "f0", low = 0.0, high = 1.0 }}]
"""
Say = Callable[[str], object]


@dataclass(frozen=True)
class Size:
    """How many good patients and odd records there are."""

    good: int = 40_000
    odd: int = 10_000


SHORT = Size(good=1_000, odd=2 * len(KINDS))


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    settings: Settings
    found: Found
    odd: Mapping[int, Odd]
    refused: set[int]
    failed: int
    restarts: int
    wrong_totals: Mapping[str, int]
    began: int
    """When publishing began, in milliseconds since 1970."""

    @property
    def diagnosed(self) -> Sequence[str]:
        """Return the good patients that were diagnosed."""
        return [name for name in self.found.stamps if name.startswith("p")]

    @property
    def rate(self) -> float:
        """Return the diagnoses of good patients per second."""
        return rate(self.found.stamps, self.diagnosed, self.began)


def run(size: Size, seed: int, rounds: int, say: Say, address: str | None = None) -> dict[str, Any]:
    """Carry out both runs `rounds` times and report; without `address`, start a broker."""
    quiet_client()
    if address is None:
        with temporary_broker() as broker:
            return _report(size, seed, asyncio.run(_all(broker.address, size, seed, rounds, say)))
    return _report(size, seed, asyncio.run(_all(address, size, seed, rounds, say)))


async def _all(address: str, size: Size, seed: int, rounds: int, say: Say) -> list[tuple[Run, Run]]:
    pairs = []
    for number in range(rounds):
        clean = await _one(address, size, seed + number, hostile=False)
        say(f"clean run: {clean.rate:,.0f} diagnoses a second")
        hostile = await _one(address, size, seed + number, hostile=True)
        say(f"hostile run: {hostile.rate:,.0f} a second")
        pairs.append((clean, hostile))
    return pairs


def _report(size: Size, seed: int, pairs: Sequence[tuple[Run, Run]]) -> dict[str, Any]:
    hostile = [odd for _, odd in pairs]
    verdicts = [judge(run.odd, run.refused, run.found) for run in hostile]
    unaccounted: Counter[str] = Counter()
    for run, verdict in zip(hostile, verdicts, strict=True):
        unaccounted.update(verdict.unaccounted)
        unaccounted.update({f"total of {total}": n for total, n in run.wrong_totals.items()})
    rates = [[run.rate for run in pair] for pair in pairs]
    clean, odd = (max(column) for column in zip(*rates, strict=True))
    return {
        "settings": {"seed": seed, "rounds": len(pairs), "partitions": PARTITIONS},
        "figures": {
            "good": size.good * len(hostile),
            "diagnosed": sum(len(run.diagnosed) for run in hostile),
            "odd": sum(len(run.odd) for run in hostile),
            "kinds": len({record.kind for run in hostile for record in run.odd.values()}),
            "unaccounted": unaccounted.total(),
            "tasks_failed": sum(run.failed for run in hostile),
            "restarts": sum(run.restarts for run in hostile),
            "clean_per_second": clean,
            "hostile_per_second": odd,
        },
        "ratios": {"clean_run": odd / clean},
        "outcomes": dict(sum((verdict.outcomes for verdict in verdicts), Counter()).most_common()),
        "unaccounted": dict(unaccounted),
    }


async def _one(address: str, size: Size, seed: int, *, hostile: bool) -> Run:
    with tempfile.TemporaryDirectory(prefix="hb-hostile-") as name:
        folder = Path(name)
        settings = await _prepared(address, folder / "ensemble")
        target = settings if hostile else await _prepared(address, folder / "decoy")
        records = list(odd_records(site(target), size.odd, seed))
        odd = {record.number: record for _, record in records} if hostile else {}
        with running(worker(folder / "ensemble"), folder) as programs:
            await _until_ready(settings)
            production, began = _production(settings, size.good, seed), wall()
            refused, _ = await asyncio.gather(_write(address, records), production.run())
            outputs = await _settled(settings, odd, size.good, programs)
            wrong = await misused(settings, odd, outputs, size.good) if hostile else {}
            failed, restarts = _troubles(programs)
        refused = refused if hostile else set()
        return Run(settings, outputs, odd, refused, failed, restarts, wrong, began)


async def _prepared(address: str, folder: Path) -> Settings:
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    settings = write_settings(folder, address, f"h{uuid4().hex[:8]}", extra=_EXTRA)
    diagnoses = Topics.of(settings).diagnoses
    topics = [
        replace(topic, config={**topic.config, **_STAMPED}) if topic.name == diagnoses else topic
        for topic in declared(settings)
    ]
    async with admin_client(settings.broker) as admin:
        await create(admin, topics)
    return settings


def site(settings: Settings) -> Site:
    """Return the topics of an ensemble, and a good document for each."""
    topics, learner, label = Topics.of(settings), LEARNERS[0], LABELS[0]
    at = wall()
    prediction = {"label": label, "phase": 1, "cube": "0", "rule": label, "at": at}
    return Site(
        {
            "instances": topics.instances(learner),
            "contexts": topics.contexts,
            "labels": topics.labels,
            "predictions": topics.predictions,
            "feedback": topics.feedback(learner),
            "diagnoses": topics.diagnoses,
            "deadletter": topics.deadletter,
        },
        {
            "instances": {"v": 1, "id": "", "x": [0.5] * WIDTH, "at": at},
            "contexts": {"v": 1, "id": "", "x": [0.5], "at": at},
            "labels": {"v": 1, "id": "", "label": label, "at": at},
            "predictions": {
                "v": 1, "id": "", "learner": learner, "exploring": False, "trials": 0, **prediction
            },
            "feedback": {"v": 1, "id": "", "predicted": label, **prediction},
        },
        wall,
    )  # fmt: skip


def _production(settings: Settings, good: int, seed: int) -> Production:
    return Production(settings, Drawn(good, seed), Trial(delay=fixed(_LABEL_AFTER), seed=seed))


async def _write(address: str, records: Sequence[tuple[str, Odd]]) -> set[int]:
    """Let each client write its records; return what brokers or clients refused."""
    of = {name: [odd for client, odd in records if client == name] for name, _ in records}
    refused = await asyncio.gather(
        by_aiokafka(address, of.get("aiokafka", []), PARTITIONS),
        asyncio.to_thread(by_confluent, address, of.get("confluent", []), PARTITIONS),
        by_kcat(address, of.get("kcat", []), PARTITIONS),
    )
    return set().union(*refused)


async def _until_ready(settings: Settings) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not (tasks := (await look(settings)).tasks) or any(t.holder is None for t in tasks):
        if time.monotonic() > deadline:
            raise HbError("the worker does not take its partitions")
        await asyncio.sleep(_PAUSE)


async def _settled(
    settings: Settings, odd: Mapping[int, Odd], good: int, programs: Programs
) -> Found:
    """Wait until everything is read and every good patient is learned; return the outcome.

    If that does not happen in time, the outcome shows what is missing.
    """
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and programs.processes[0].poll() is None:
        overview = await look(settings)
        learned = overview.scores.labelled
        if not any(task.behind for task in overview.tasks) and learned >= good:
            break
        await asyncio.sleep(_PAUSE)
    return await read_back(settings, odd)


def _troubles(programs: Programs) -> tuple[int, int]:
    """Return how many tasks have stopped for good, and how many workers have exited."""
    log = programs.logs[0].read_text(errors="replace")
    ended = sum(process.poll() is not None for process in programs.processes)
    return log.count(" stops: "), ended
