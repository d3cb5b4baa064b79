"""Metrics of this worker's agents, counted when their batches are committed.

An agent notes what it did; the notes arrive here with the commit, or not at all. They count from 0
in each process, and add up over several workers.
"""

import time
from collections.abc import Iterable

import numpy as np
from prometheus_client import CollectorRegistry

from streams.engine.measurements import Numbers
from streams.engine.meters import LONG_SECONDS, SECONDS, Counter, Histogram, Spec
from streams.engine.observer import Committed, Observer
from streams.kafka.topics import local

INSTANCES = Spec(
    "hb_instances_total", "counter", "Instances that a learner of this worker read.", ("learner",)
)
PREDICTIONS = Spec(
    "hb_predictions_total", "counter", "Predictions that a learner of this worker sent.",
    ("learner",),
)  # fmt: skip
DIAGNOSES = Spec(
    "hb_diagnoses_total",
    "counter",
    "Diagnoses that this worker sent, complete or made without a learner that was late.",
    ("complete",),
)
LABEL_DELAY = Spec(
    "hb_label_delay_seconds",
    "histogram",
    "Time from a diagnosis to its label, by the records' timestamps.",
    buckets=LONG_SECONDS,
)
END_TO_END = Spec(
    "hb_end_to_end_seconds",
    "histogram",
    "Time from an instance's record to the commit of its diagnosis.",
    buckets=SECONDS,
)
SHRUNK_RECORDS = Spec(
    "hb_early_records_shrunk_total",
    "counter",
    "Labels and contexts that came before their diagnosis and of which only a digest is kept,"
    " because the records of others fill the space for them.",
)
PROCESS = (INSTANCES, PREDICTIONS, DIAGNOSES, LABEL_DELAY, END_TO_END, SHRUNK_RECORDS)

# The names of what agents note. Times are in milliseconds.
READ, SAID = "read", "said"
COMPLETE, INCOMPLETE = "complete", "incomplete"
DELAYS, ARRIVED = "delays", "arrived"
DIAGNOSED = "diagnosed"
SHRUNK = "shrunk"


class PipelineObserver(Observer):
    """Counts what agents note."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._instances, self._predictions = Counter(INSTANCES), Counter(PREDICTIONS)
        self._diagnoses = Counter(DIAGNOSES)
        self._delays, self._ends = Histogram(LABEL_DELAY), Histogram(END_TO_END)
        self._shrunk = Counter(SHRUNK_RECORDS)
        counters = self._instances, self._predictions, self._diagnoses, self._shrunk
        for meter in (*counters, self._delays, self._ends):
            registry.register(meter)

    def committed(self, commit: Committed) -> None:
        """Count what was noted."""
        learner, counts = commit.agent.removeprefix(local("")), commit.notes.counts
        if READ in counts:
            self._instances.add(counts[READ], learner)
            self._predictions.add(counts.get(SAID, 0), learner)
        for name, complete in ((COMPLETE, "true"), (INCOMPLETE, "false")):
            if name in counts:
                self._diagnoses.add(counts[name], complete)
        if SHRUNK in counts:
            self._shrunk.add(counts[SHRUNK])
        values = commit.notes.values
        if DELAYS in values:
            self._delays.observe_all(_joined(values[DELAYS]) / 1000)
        if ARRIVED in values:
            # Clocks of other machines may be slightly ahead of ours.
            seconds = np.maximum(time.time() - _joined(values[ARRIVED]) / 1000, 0.0)
            self._ends.observe_all(seconds)


def _joined(parts: Iterable[Numbers]) -> Numbers:
    return np.concatenate(list(parts))
