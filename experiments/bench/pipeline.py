"""The pipeline from end to end against a raw relay and plain Faust agents, on one broker, in turn.

Each has its own topics with the same patients and labels, all there before it starts. Its rate is
patients over the time from the first to the last record of its outputs, by the broker's own stamps:
so starting costs nothing, nothing else runs meanwhile, and nobody measures himself.

    ours          `hb worker`: one process with all roles, exactly once; until the last label is
                  learned by everybody
    raw_relay     one process, see `experiments.bench.pipeline_peers.raw_relay`
    plain_faust   four processes, one for each role
"""

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

from experiments.bench.pipeline_job import (
    LEARNERS,
    outputs,
    patients,
    publish,
    settings_file,
    worker,
    write_settings,
)
from experiments.bench.pipeline_marks import Marks, read_marks, wait_for
from experiments.bench.processes import await_page, running
from experiments.bench.watching import watched
from streams.broker.keeper import temporary_broker
from streams.connection import admin_client, quiet_client
from streams.errors import HbError
from streams.settings import Settings
from streams.topic_admin import create
from streams.topics import ENSEMBLE, Topics, declared, local

_PATIENCE = 60.0
_AGO = 3_600_000
"""How long ago the patients came, in milliseconds: long enough for a backlog."""
_STAMPED = {"message.timestamp.type": "LogAppendTime"}
_PAIRS = 7
_WATCHED = ("worker.metrics=true", "worker.console=true")


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to run the pipeline, and on how many patients it is measured."""

    name: str
    patients: int
    quick: int
    programs: Callable[[Path], Sequence[Sequence[str]]]
    learns: bool = False
    """Its state is in the pipeline's changelogs: it has ended when the last of them is written."""
    watched: bool = False


def watched_worker(folder: Path) -> list[list[str]]:
    """Return the command of a worker that serves its metrics and its console."""
    return worker(folder, *_WATCHED)


def relay(folder: Path) -> list[list[str]]:
    """Return the command of the relay."""
    module = "experiments.bench.pipeline_peers.raw_relay"
    return [[sys.executable, "-m", module, str(settings_file(folder))]]


def plain_faust(folder: Path) -> list[list[str]]:
    """Return the commands of the Faust agents: a process for each role."""
    module = "experiments.bench.pipeline_peers.plain_faust"
    program = [sys.executable, "-m", module, str(settings_file(folder))]
    return [[*program, str(folder / name), name] for name in (*LEARNERS, ENSEMBLE)]


OURS = Rival("ours", 200_000, 50_000, worker, learns=True)
WATCHED = replace(OURS, name="ours_watched", programs=watched_worker, watched=True)
RIVALS = (
    OURS,
    Rival("raw_relay", 400_000, 100_000, relay),
    Rival("plain_faust", 3_000, 1_500, plain_faust),
)


def steps(rounds: int, watching: bool) -> int:
    """Return how many runs a benchmark takes."""
    return rounds * len(RIVALS) + (_PAIRS if watching else 0)


def run(
    rounds: int, quick: bool, watching: bool, seed: int, tick: Callable[[], object]
) -> dict[str, Any]:
    """Measure everybody `rounds` times in turn; the best run of each counts."""
    quiet_client()
    rates: dict[str, list[float]] = {}
    with temporary_broker() as broker:
        for number in range(rounds):
            for rival in RIVALS:
                done = asyncio.run(_one(broker.address, rival, quick, seed + number))
                rates.setdefault(rival.name, []).append(done.rate)
                tick()
        best = {name: max(found) for name, found in rates.items()}
        figures = {f"{name}_patients_per_second": rate for name, rate in best.items()}
        costs = _watching_costs(broker.address, quick, seed, tick) if watching else []
    if costs:
        for name, found in {
            "watching_cost": [cost.rate for cost in costs],
            "watching_cpu_cost": [cost.cpu for cost in costs],
        }.items():
            figures |= {name: median(found), f"{name}_se": median_error(found)}
    return {
        "settings": {"rounds": rounds, "quick": quick, "seed": seed, "partitions": 1},
        "figures": figures,
        "watching_costs": [cost._asdict() for cost in costs],
        "ratios": {name: best[OURS.name] / best[name] for name in ("raw_relay", "plain_faust")},
    }


def median_error(found: Sequence[float]) -> float:
    """Return about one standard error of a median, by the spread of what it is the median of.

    >>> round(median_error([0.1, 0.2, 0.3, 0.4, 0.5]), 3)
    0.083
    """
    deviation = 1.4826 * median(abs(each - median(found)) for each in found)
    return 1.2533 * deviation / math.sqrt(len(found))


class Cost(NamedTuple):
    """The share of its rate that a worker loses by being watched, and of its processor time."""

    rate: float
    cpu: float


def _watching_costs(address: str, quick: bool, seed: int, tick: Callable[[], object]) -> list[Cost]:
    """Return what being watched costs, in several runs.

    It is a few parts in a hundred, less than two runs differ by chance. So a worker that is watched
    and one that is not run at the same time, each on its own patients: what slows the machine slows
    both. Of several such runs the median counts. Processor time for the same patients varies less
    than the rate; a worker that is busy all the time loses as much of its rate as it uses of that.
    """

    async def both(number: int) -> Cost:
        pair = [_one(address, rival, quick, seed + number) for rival in (OURS, WATCHED)]
        alone, watched = await asyncio.gather(*pair)
        return Cost(1.0 - watched.rate / alone.rate, 1.0 - alone.cpu_seconds / watched.cpu_seconds)

    costs = []
    for number in range(_PAIRS):
        costs.append(asyncio.run(both(number)))
        tick()
    return costs


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: patients per second, and the processor's time from when the program was up."""

    rate: float
    cpu_seconds: float


async def _one(address: str, rival: Rival, quick: bool, seed: int) -> Measured:
    """Carry out one run."""
    count = rival.quick if quick else rival.patients
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        folder = Path(name)
        settings = write_settings(folder, address, f"b{uuid4().hex[:8]}")
        marks = marked(Topics.of(settings), rival)
        await _create(settings, marks)
        begin = time.time_ns() // 1_000_000 - _AGO - count
        await publish(settings, patients(settings, count, seed, begin))
        with running(rival.programs(folder), folder) as programs:
            if rival.learns:  # a worker, which says when it is up
                await await_page(programs.logs[0])
            before = programs.cpu_seconds
            async with watched(programs.logs[0]) if rival.watched else nullcontext():
                await wait_for(settings, outputs(Topics.of(settings)), count, _PATIENCE)
            used = programs.cpu_seconds - before
        found = await read_marks(settings, marks)
    _check(rival, count, found, outputs(Topics.of(settings)))
    first = min(mark.first for mark in found.values())
    seconds = (max(mark.last for mark in found.values()) - first) / 1000
    return Measured(count / seconds, used)


def marked(topics: Topics, rival: Rival) -> list[str]:
    """Return the topics whose stamps tell when a rival began and when it was done."""
    learned = [topics.changelog(local(name)) for name in topics.learners] if rival.learns else []
    return [*outputs(topics), *learned]


async def _create(settings: Settings, marks: Sequence[str]) -> None:
    """Create the topics as declared, stamped by the broker where the pipeline does not mind."""
    topics = [
        replace(topic, config={**topic.config, **_STAMPED}) if topic.name in marks else topic
        for topic in declared(settings)
    ]
    async with admin_client(settings.broker) as admin:
        await create(admin, topics)


def _check(rival: Rival, count: int, found: dict[str, Marks], topics: Sequence[str]) -> None:
    for topic in topics:
        mark = found[topic]
        if mark.records < count or (rival.learns and not mark.records == mark.distinct == count):
            raise HbError(
                f"{rival.name}: {count} patients, and {topic} has {mark.records} records of"
                f" {mark.distinct} of them"
            )
