"""Metrics of the whole system, from the exactly-once state: no restart and no second worker resets
or doubles them. Every worker serves the same; over several of them take the maximum, not the sum.
"""

import time
from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agents.monitor.overview import Overview
from agents.monitor.scores import ENSEMBLE, Board
from agents.monitor.watch import Watch
from streams.engine.meters import Labels, Spec, filled

Samples = Iterable[tuple[Labels, float]]

_WHO = ("scope", "learner")
_RATE = (*_WHO, "window")
_COMPARED = (
    "comparator is best_learner: the expert with the fewest errors so far;"
    " best_learner_per_context: the one with the fewest in each context cube"
)
_OF_ORACLE = (
    "local_oracle: a learner against the best of its own rules in every cube, estimated from its"
    " counts (of each partition apart, so rather too high with several)"
)

ERRORS = {
    "per": Spec(
        "hb_prediction_error_rate",
        "gauge",
        "Share of wrong predictions among the labelled ones: of all, or of the last 1000.",
        _RATE,
    ),
    "fpr": Spec(
        "hb_false_positive_rate",
        "gauge",
        "Share of wrong predictions among those whose truth is not the positive label.",
        _RATE,
    ),
    "fnr": Spec(
        "hb_false_negative_rate",
        "gauge",
        "Share of wrong predictions among those whose truth is the positive label.",
        _RATE,
    ),
}
ERROR_BOUND = Spec(
    "hb_prediction_error_rate_bound",
    "gauge",
    f"The comparator's errors and the bound on regret, as a share of the labelled; {_COMPARED}.",
    ("comparator",),
)
CONFUSION = Spec(
    "hb_confusion_total",
    "counter",
    "Labelled predictions by truth and by what was predicted.",
    (*_WHO, "truth", "predicted"),
)
REGRET = Spec(
    "hb_regret",
    "gauge",
    "Errors to expect beyond those of a comparator, had one expert been drawn by its weight each"
    f" time; {_COMPARED}; {_OF_ORACLE}.",
    ("comparator", "learner"),
)
REGRET_BOUND = Spec(
    "hb_regret_bound",
    "gauge",
    "What theory allows hb_regret to be on average, where it promises anything: Theorem 2 or 4 for"
    f" Hedge's weights, Theorem 1 for the paper's own local learner; {_COMPARED}; {_OF_ORACLE}.",
    ("comparator", "learner"),
)
WEIGHT = Spec("hb_weight", "gauge", "Share of each expert in the latest diagnosis.", ("expert",))
ACCURACY = Spec("hb_accuracy", "gauge", "Share of right predictions among the labelled.", _WHO)
ACCURACY_LOW = Spec(
    "hb_accuracy_low",
    "gauge",
    "Lower end of an interval around hb_accuracy that holds at all times together, with 95 %.",
    _WHO,
)
ACCURACY_HIGH = Spec("hb_accuracy_high", "gauge", "Upper end of that interval.", _WHO)
EXPLORATION = Spec(
    "hb_exploration_ratio",
    "gauge",
    "Share of a learner's decisions that tried a rule which does not look best.",
    ("learner",),
)
CUBES = Spec(
    "hb_cubes",
    "gauge",
    "Cubes that a learner has labels from; one known to several partitions counts for each.",
    ("learner",),
)
LABELLED = Spec(
    "hb_labelled_total", "counter", "Labels learned from, by the ensemble and each learner.", _WHO
)
LABELS = Spec(
    "hb_labels_total",
    "counter",
    "Labels by what became of them: settled (learned from), duplicate (the same again), conflict"
    " (another one for a patient that has one), unknown (nobody predicted that patient in time),"
    " expired (came after its patient was given up), pending_full (no room to wait).",
    ("outcome",),
)
EXPIRED = Spec(
    "hb_expired_total", "counter", "Diagnoses that were given up because no label came in time."
)
PENDING = Spec(
    "hb_pending", "gauge", "Patients that wait for a prediction, a diagnosis or a label."
)
PENDING_LIMIT = Spec(
    "hb_pending_limit", "gauge", "How many may wait; then the oldest diagnoses are given up."
)
PARKED = Spec(
    "hb_parked_labels", "gauge", "Labels that came before their patient's diagnosis, and wait."
)
TARGET = Spec("hb_target", "gauge", "The rate that the settings ask for: per or fnr.", ("rate",))
THRESHOLD = Spec(
    "hb_threshold",
    "gauge",
    "The chance from which on FNR control says the positive label; absent without FNR control, or"
    " if every context has its own.",
)
PREDICTED = Spec(
    "hb_predicted_total",
    "counter",
    "Predictions by label, labelled or not: a mix that shifts is an early sign of trouble.",
    (*_WHO, "label"),
)
DISAGREEMENTS = Spec(
    "hb_disagreements_total", "counter", "Diagnoses whose learners did not all agree."
)
THIN = Spec(
    "hb_thin_predictions_total",
    "counter",
    "Predictions by a rule with fewer than ten trials in the cube.",
    ("learner",),
)
DECISIONS = Spec("hb_decisions_total", "counter", "Instances that a learner decided.", ("learner",))
FUSIONS = Spec(
    "hb_fusions_total",
    "counter",
    "Diagnoses, complete or made without somebody who was not heard in time.",
    ("complete",),
)
AGE = Spec("hb_state_age_seconds", "gauge", "How old these figures are at this worker.")

STATE = (
    *ERRORS.values(), ERROR_BOUND, CONFUSION, REGRET, REGRET_BOUND, WEIGHT, ACCURACY, ACCURACY_LOW,
    ACCURACY_HIGH, EXPLORATION, CUBES, LABELLED, LABELS, EXPIRED, PENDING, PENDING_LIMIT, PARKED,
    TARGET, THRESHOLD, PREDICTED, DISAGREEMENTS, THIN, DECISIONS, FUSIONS,
)  # fmt: skip
"""All that follows from the state alone; AGE does not."""

OUTCOMES = {
    "settled": ("settled",),
    "duplicate": ("label_duplicate",),
    "conflict": ("label_conflict",),
    "unknown": ("parked_label_unknown",),
    "expired": ("label_expired", "label_evicted"),
    "pending_full": ("label_pending_full",),
}
"""The join's counters behind each outcome of a label."""


class StateCollector(Collector):
    """Serves the latest look of a watch; nothing before the first."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of the state and their age."""
        latest = self._watch.latest
        if latest is not None:
            yield from state_metrics(latest)
            yield filled(AGE, [((), time.time() - latest.at)])


def state_metrics(found: Overview) -> Iterator[Metric]:
    """Return every metric that the state leads to."""
    samples = {**_errors(found.board), **_learning(found.board), **_join(found)}
    for spec in STATE:
        yield filled(spec, samples[spec])


def _who(name: str) -> Labels:
    return (ENSEMBLE, "") if name == ENSEMBLE else ("learner", name)


def _errors(board: Board) -> dict[Spec, Samples]:
    windows = {"all": board.rates, "1000": board.recent}
    rates = {
        spec: [
            ((*_who(name), window), value)
            for window, named in windows.items()
            for name, of in named.items()
            if (value := of[rate]) is not None
        ]
        for rate, spec in ERRORS.items()
    }
    return {
        **rates,
        ERROR_BOUND: [((each,), value) for each, value in board.error_bounds.items()],
        CONFUSION: [
            ((*_who(name), board.labels[truth], board.labels[said]), float(count))
            for name, matrix in board.confusion.items()
            for truth, row in enumerate(matrix.tolist())
            for said, count in enumerate(row)
        ],
        ACCURACY: [(_who(name), each.value) for name, each in board.accuracy.items()],
        ACCURACY_LOW: [(_who(name), each.low) for name, each in board.accuracy.items()],
        ACCURACY_HIGH: [(_who(name), each.high) for name, each in board.accuracy.items()],
        TARGET: [((rate,), target) for rate, target in board.targets.items()],
        THRESHOLD: [] if board.threshold is None else [((), board.threshold)],
    }


def _learning(board: Board) -> dict[Spec, Samples]:
    return {
        REGRET: [((each.comparator, each.learner), each.value) for each in board.regrets],
        REGRET_BOUND: [
            ((each.comparator, each.learner), each.bound)
            for each in board.regrets
            if each.bound is not None
        ],
        WEIGHT: [((expert,), weight) for expert, weight in board.weights.items()],
        EXPLORATION: [
            ((name,), share) for name, share in board.exploration.items() if share is not None
        ],
        CUBES: _by_learner(board.cubes),
        THIN: _by_learner(board.thin),
        DECISIONS: _by_learner(board.instances),
        PREDICTED: [
            ((*_who(name), label), float(count))
            for name, counts in board.predicted.items()
            for label, count in counts.items()
        ],
        DISAGREEMENTS: [((), float(board.disagreements))],
    }


def _by_learner(counts: dict[str, int]) -> Samples:
    return [((name,), float(count)) for name, count in counts.items()]


def _join(found: Overview) -> dict[Spec, Samples]:
    counts = found.counts
    learned = {ENSEMBLE: counts["settled"], **found.board.learned}
    return {
        LABELLED: [(_who(name), float(count)) for name, count in learned.items()],
        LABELS: [
            ((outcome,), float(sum(counts[name] for name in names)))
            for outcome, names in OUTCOMES.items()
        ],
        EXPIRED: [((), float(counts["expired"] + counts["evicted"]))],
        PENDING: [((), float(found.pending))],
        PENDING_LIMIT: [((), float(found.limit))],
        PARKED: [((), float(found.parked))],
        FUSIONS: [
            (("true",), float(counts["diagnosed_complete"])),
            (("false",), float(counts["diagnosed_incomplete"])),
        ],
    }
