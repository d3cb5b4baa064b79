"""What a patient costs the ensemble learner while few or many others wait for their labels.

Everything but the broker is real: the agent's processor, its tables with RocksDB under them, the
encoding of predictions, labels, outputs and changelog records. The same bytes would go to the same
broker in both cases. Measured in the steady state, in which as many patients come as are labelled.

    in order   labels come in the order of their patients
    random     labels come for random waiting patients, whose entries are far apart in memory

Both sizes take turns, a round of batches each, and each keeps its median round. The figure is the
processor time of the whole process, so it includes the garbage collector and RocksDB's threads.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from aiokafka.producer.message_accumulator import BatchBuilder

from agents import ensemble_learner
from bench.pipeline.job import LABELS, LEARNERS, write_settings
from learners.join import Ledger
from schemas.records import Label, Prediction
from schemas.writing import encode_all
from settings.model import Settings
from streams.engine.api import TaskContext
from streams.engine.changelogs.changelog import Changelogs
from streams.engine.outbox import Outbox
from streams.engine.state.store import Store
from streams.engine.tasks import garbage as heap
from streams.kafka.batch import Batch
from streams.kafka.topics import ENSEMBLE, Topics

FEW, MANY = 1_000, 1_000_000
BATCH = 500
"""Patients per batch, which is one transaction: so all are stored while they wait."""
BATCHES = 16
"""Batches per round."""
_START = 1_700_000_000_000
_FILL = 20_000
"""Patients added at a time until there are enough."""


class Site:
    """An ensemble learner with a given number of patients waiting for their labels."""

    def __init__(self, settings: Settings, folder: Path, rng: np.random.Generator) -> None:
        self._topics = Topics.of(settings)
        spec = ensemble_learner.spec(settings)
        self._tables = list(spec.tables())
        self._store = Store(folder, [table.name for table in self._tables])
        for table in self._tables:
            table.load(self._store)
        topics = self._topics.changelog(ENSEMBLE), self._topics.shared(ENSEMBLE)
        self._changelogs = Changelogs(self._tables, self._store, 0, *topics)
        tables = {table.name: table for table in self._tables}
        context = TaskContext(ENSEMBLE, 0, tables)
        self._agent = ensemble_learner.EnsembleProcessor(settings, context)
        self._rng, self._time = rng, _START
        self._waiting: list[str] = []
        self.bytes = 0

    def fill(self, patients: int) -> None:
        """Add patients until that many wait."""
        while len(self._waiting) < patients:
            self._step(min(_FILL, patients - len(self._waiting)), label=())
            self._commit()

    def round(self, random: bool) -> float:
        """Add and label batches of patients; return the seconds that the agent took."""
        seconds = 0.0
        for _ in range(BATCHES):
            seconds += self._step(BATCH, label=self._leave(BATCH, random))
            begin = time.process_time()
            self._commit()
            seconds += time.process_time() - begin
        return seconds

    @property
    def counts(self) -> dict[str, int]:
        """Return what became of the patients, and how many wait."""
        ledger: Ledger = self._agent.learner.ledger
        return {**ledger.counts, "pending": ledger.pending}

    def close(self) -> None:
        """Release the folder."""
        self._store.close()

    def _leave(self, count: int, random: bool) -> list[str]:
        """Return patients that are labelled now."""
        waiting = self._waiting
        if random:
            chosen = sorted(self._rng.choice(len(waiting), count, replace=False), reverse=True)
            names = []
            for place in chosen:
                # The last one fills the gap: the order of waiting patients does not matter here.
                waiting[place], waiting[-1] = waiting[-1], waiting[place]
                names.append(waiting.pop())
            self._rng.shuffle(names)
            return names
        names = waiting[:count]
        del waiting[:count]
        return names

    def _step(self, patients: int, label: Sequence[str]) -> float:
        """Feed a batch of predictions and one of labels; return the seconds of processing."""
        names = [f"{number:016x}" for number in self._rng.integers(0, 2**63, patients).tolist()]
        self._time += patients
        predictions = self._batch(self._topics.predictions, self._predictions(names))
        labels = self._batch(self._topics.labels, self._labels(label))
        out = Outbox(_builder, 0, self._topics.deadletter)
        begin = time.process_time()
        self._agent.process(predictions, out)
        if label:
            self._agent.process(labels, out)
        took = time.process_time() - begin
        self._waiting += names
        return took

    def _commit(self) -> None:
        """Do what a commit does, except for the broker."""
        self._agent.save()
        changes = {table.name: table.drain() for table in self._tables}
        encoded = self._changelogs.encode(changes, {}, _builder)
        self.bytes += sum(batch.size() for batches in encoded.values() for batch in batches)
        self._changelogs.store_changes(changes, {}, {})
        for table in self._tables:
            table.settle()

    def _batch(self, topic: str, records: list[tuple[str, bytes]]) -> Batch:
        n = len(records)
        keys: list[bytes | None] = [name.encode() for name, _ in records]
        values: list[bytes | None] = [value for _, value in records]
        return Batch(topic, 0, 0, n, n, list(range(n)), [self._time] * n, keys, values)

    def _predictions(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return what the learners say, one learner after the other."""
        cubes = self._rng.integers(0, 1024, (len(LEARNERS), len(names))).tolist()
        rules = self._rng.integers(0, 2, (len(LEARNERS), len(names))).tolist()
        trials = self._rng.integers(1, 200, (len(LEARNERS), len(names))).tolist()
        at = self._time
        return [
            (name, value)
            for learner, columns in zip(
                LEARNERS, zip(cubes, rules, trials, strict=True), strict=True
            )
            for name, value in zip(names, self._encoded(learner, names, columns, at), strict=True)
        ]

    @staticmethod
    def _encoded(learner: str, names: Sequence[str], columns: Any, at: int) -> list[bytes]:
        return encode_all(
            Prediction(
                name, learner, LABELS[rule], 1, str(cube), LABELS[rule], False, n, at,
                0.9 * n / (n + 1), 0.5 * n / (n + 1), 0.99, 8 / n,
            )
            for name, cube, rule, n in zip(names, *columns, strict=True)
        )  # fmt: skip

    def _labels(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        truth = self._rng.integers(0, 2, len(names)).tolist()
        records = [Label(n, LABELS[k], self._time) for n, k in zip(names, truth, strict=True)]
        return list(zip(names, encode_all(records), strict=True))


def _builder() -> Any:
    return BatchBuilder(512 << 10, 0, is_transactional=True)


def run(rounds: int, seed: int, tick: Callable[[], object], many: int = MANY) -> dict[str, Any]:
    """Measure, and return the report."""
    heap.calm()
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        folder = Path(name)
        room = f"ensemble.max_pending={2 * many}"
        settings = write_settings(folder, "localhost:9", "pending", room)
        sites = {n: Site(settings, folder / str(n), rng) for n in (FEW, many)}
        for size, site in sites.items():
            site.fill(size)
            tick()
        heap.settle(again=True)
        figures: dict[str, float] = {}
        for how in ("in_order", "random"):
            figures |= _race(sites, rounds, how, tick)
        for site in sites.values():
            site.close()
    figures["pending_cost"] = max(figures["cost_in_order"], figures["cost_random"])
    return {
        "settings": {"few": FEW, "many": many, "rounds": rounds, "seed": seed},
        "figures": figures,
        "ratios": {},
    }


def _race(
    sites: dict[int, Site], rounds: int, how: str, tick: Callable[[], object]
) -> dict[str, float]:
    times: dict[int, list[float]] = {size: [] for size in sites}
    for _ in range(rounds):
        for size, site in sites.items():
            times[size].append(site.round(how == "random"))
            tick()
    few, many = (median(seconds) / (BATCHES * BATCH) for seconds in times.values())
    return {
        f"us_per_patient_few_{how}": few * 1e6,
        f"us_per_patient_many_{how}": many * 1e6,
        f"cost_{how}": many / few,
    }


def steps(rounds: int) -> int:
    """Return how often `tick` will be called."""
    return 2 + 4 * rounds
