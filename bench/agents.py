"""What a patient costs the agents: processor time, without broker, disk or network.

Three local learners and the ensemble learner take batches of a thousand patients, and their labels
right after that: decide, fuse, join, learn. Each agent takes what the others send.

`against` is another checkout of this project, an earlier one for instance: the same program then
runs in turn on both, so that a ratio says what a change costs whatever else the machine does. This
file runs there too, with the modules of that checkout, so it uses only what both have.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from agents.roles import specs
from agents.testing import START, Agent
from bench.pipeline.job import Patients, write_settings
from bench.pipeline.job import patients as drawn_patients
from settings.errors import InputError
from settings.model import Settings
from streams.kafka.batch import Batch
from streams.kafka.topics import ENSEMBLE, Topics

BATCH = 1_000
PATIENTS, QUICK_PATIENTS = 30_000, 5_000
OURS, THEIRS = "ours", "against"


def steps(rounds: int, against: Path | None) -> int:
    """Return how many runs a benchmark takes."""
    return rounds * (1 if against is None else 2)


def run(
    rounds: int, quick: bool, against: Path | None, seed: int, tick: Callable[[], object]
) -> dict[str, Any]:
    """Measure each checkout `rounds` times in turn; figures are medians, in microseconds."""
    root = Path(__file__).parents[1]
    places = {OURS: root} | ({} if against is None else {THEIRS: _checkout(against)})
    patients = QUICK_PATIENTS if quick else PATIENTS
    costs: dict[str, list[dict[str, float]]] = {name: [] for name in places}
    for number in range(rounds):
        for name, folder in places.items():
            costs[name].append(_measured(folder, patients, seed + number))
            tick()
    figures = {
        f"{name}.{agent}_microseconds": median(cost[agent] for cost in rows)
        for name, rows in costs.items()
        for agent in rows[0]
    }
    report: dict[str, Any] = {
        "settings": {"rounds": rounds, "patients": patients, "seed": seed},
        "figures": figures,
        "ratios": {},
    }
    if against is not None:
        pairs = zip(costs[OURS], costs[THEIRS], strict=True)
        of_rounds = [ours["all"] / theirs["all"] for ours, theirs in pairs]
        report |= {"ratios": {THEIRS: median(of_rounds)}, "ratios_of_rounds": {THEIRS: of_rounds}}
    return report


def _checkout(folder: Path) -> Path:
    if not (folder / "agents" / "testing.py").is_file():
        raise InputError(f"{folder} is no checkout of this project that the benchmark can run in")
    return folder.resolve()


def _measured(folder: Path, patients: int, seed: int) -> dict[str, float]:
    """Run this file in a process of its own, with the modules of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}
    program = [sys.executable, __file__, str(patients), str(seed)]
    done = subprocess.run(  # noqa: S603 - this file
        program, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InputError(f"the benchmark cannot run in {folder}: {done.stderr.strip()[-300:]}")
    costs: dict[str, float] = json.loads(done.stdout)
    return costs


class Clinic:
    """All agents, fed batch by batch, and the processor time that each has taken."""

    def __init__(self, settings: Settings) -> None:
        self.topics = Topics.of(settings)
        self.agents = {spec.name: Agent(spec) for spec in specs(settings)}
        self.seconds = dict.fromkeys(self.agents, 0.0)
        self._ends: dict[str, int] = {}

    def take(self, name: str, batch: Batch) -> dict[str, list[Any]]:
        """Let an agent process a batch; return what it sends, by topic."""
        agent = self.agents[name]
        began = time.process_time()
        messages = agent.process(batch, "")
        for table in agent.tables.values():
            table.drain()
        self.seconds[name] += time.process_time() - began
        by_topic: dict[str, list[Any]] = {}
        for topic, at, key, value, _headers in messages:
            by_topic.setdefault(topic, []).append((at, key, value))
        return by_topic

    def batch(self, topic: str, rows: Sequence[Any]) -> Batch:
        """Return rows of time, key and value as the next batch of a topic."""
        times, keys, values = map(list, zip(*rows, strict=True))
        begin = self._ends.get(topic, 0)
        end = self._ends[topic] = begin + len(rows)
        return Batch(topic, 0, begin, end, end, list(range(begin, end)), times, keys, values, {})

    def treat(self, job: Patients, part: slice) -> int:
        """Take some patients all the way; return how many were diagnosed."""
        keys, times = job.keys[part], job.times[part]
        predictions = []
        for topic, values in job.instances.items():
            rows = list(zip(times, keys, values[part], strict=True))
            sent = self.take(self._reader(topic), self.batch(topic, rows))
            predictions += sent[self.topics.predictions]
        sent = self.take(ENSEMBLE, self.batch(self.topics.predictions, predictions))
        diagnosed = len(sent[self.topics.diagnoses])
        rows = list(zip(times, keys, job.labels[part], strict=True))
        sent = self.take(ENSEMBLE, self.batch(self.topics.labels, rows))
        for topic, feedback in sent.items():
            self.take(self._reader(topic), self.batch(topic, feedback))
        return diagnosed

    def _reader(self, topic: str) -> str:
        return next(name for name, agent in self.agents.items() if topic in agent.spec.inputs)


def measure(patients: int, seed: int) -> dict[str, float]:
    """Return the microseconds of processor time that a patient costs each agent, and all."""
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as folder:
        settings = write_settings(Path(folder), "127.0.0.1:1", "cost")
        job = drawn_patients(settings, patients, seed, START)
    clinic = Clinic(settings)
    gc.collect()
    gc.freeze()
    diagnosed = sum(clinic.treat(job, slice(k, k + BATCH)) for k in range(0, patients, BATCH))
    assert diagnosed == patients, f"{diagnosed} of {patients} were diagnosed"  # noqa: S101
    costs = {name: 1e6 * seconds / patients for name, seconds in clinic.seconds.items()}
    return costs | {"all": sum(costs.values())}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
