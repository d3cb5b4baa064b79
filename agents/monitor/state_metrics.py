"""Metrics of the whole system, from the exactly-once state.

Restarts do not reset them and several workers do not double them: every worker serves the same
values, so aggregate over workers with the maximum, not the sum.
"""

import time
from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agents.monitor.overview import Overview
from agents.monitor.scores import ENSEMBLE, Scores
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
    " counts (per partition, hence rather too high with several)"
)

ERRORS = {
    "per": Spec(
        "hb_prediction_error_rate",
        "gauge",
        "Share of wrong predictions among all labelled ones, or among the last 1,000; window is"
        " history for past patients, who are in neither.",
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
    "The comparator's errors plus the bound on regret and the patients on whom no learner spoke, as"
    " a share of the labelled patients;"
    f" {_COMPARED}.",
    ("comparator",),
)
CONFUSION = Spec(
    "hb_confusion_total",
    "counter",
    "Labelled predictions by true and predicted label.",
    (*_WHO, "truth", "predicted"),
)
REGRET = Spec(
    "hb_regret",
    "gauge",
    "Expected errors beyond those of a comparator, had one expert been drawn by its weight each"
    f" time; {_COMPARED}; {_OF_ORACLE}.",
    ("comparator", "learner"),
)
REGRET_BOUND = Spec(
    "hb_regret_bound",
    "gauge",
    "Upper bound by theory on the expectation of hb_regret, where there is one: for Hedge's"
    f" weights, labels late or not; {_COMPARED}.",
    ("comparator", "learner"),
)
WEIGHT = Spec("hb_weight", "gauge", "Each expert's share in the latest diagnosis.", ("expert",))
ACCURACY = Spec("hb_accuracy", "gauge", "Share of right predictions among the labelled ones.", _WHO)
ACCURACY_LOW = Spec(
    "hb_accuracy_low",
    "gauge",
    "Lower end of a 95 % interval for the mean chance of being right so far; it holds at all"
    " times.",
    _WHO,
)
ACCURACY_HIGH = Spec("hb_accuracy_high", "gauge", "Upper end of that interval.", _WHO)
EXPLORATION = Spec(
    "hb_exploration_ratio",
    "gauge",
    "Share of a learner's decisions that tried a rule other than the one that looks best.",
    ("learner",),
)
CUBES = Spec(
    "hb_cubes",
    "gauge",
    "Cubes that a learner has labels from; one known to several partitions counts once for each.",
    ("learner",),
)
LABELLED = Spec(
    "hb_labelled_total",
    "counter",
    "Labels learned from, by the ensemble (without those of history) and each learner.",
    _WHO,
)
TAUGHT = Spec(
    "hb_taught_total", "counter", "Labels of past patients that the ensemble learned from."
)
LABELS = Spec(
    "hb_labels_total",
    "counter",
    "Labels by outcome: settled (learned from), duplicate (the same label again), conflict (a"
    " different label for a patient that has one), unknown (no learner predicted for that patient"
    " in time), expired (came after its patient had been dropped), pending_full (no room to wait).",
    ("outcome",),
)
CORRECTIONS = Spec(
    "hb_label_corrections_total",
    "counter",
    "Labels that amend or withdraw another, by outcome: amended or withdrawn (recounted), early"
    " (nothing had been learned yet), unchanged (nothing to change), final (too late for"
    " `amend_ttl`), refused (the patient was dropped, or there was no room to wait).",
    ("outcome",),
)
UNLEARNED = Spec(
    "hb_unlearned_labels",
    "gauge",
    "Patients whose label is no longer the one learned by rules and fusion rules that cannot"
    " unlearn.",
)
AMENDABLE = Spec("hb_amendable_labels", "gauge", "Labels that can still be amended or withdrawn.")
AMENDABLE_BYTES = Spec(
    "hb_amendable_bytes", "gauge", "Bytes that are kept so that labels can be amended."
)
EXPIRED = Spec("hb_expired_total", "counter", "Diagnoses dropped because no label came in time.")
REPEATED = Spec(
    "hb_repeated_predictions_total",
    "counter",
    "Predictions for a patient that the learner had predicted before, the same again (duplicate) or"
    " another (conflict), which is a sign that ids are reused; or for a patient whose label had"
    " been learned or was no longer waited for (over), as when a learner is late.",
    ("outcome",),
)
PENDING = Spec("hb_pending", "gauge", "Patients waiting for a prediction, a diagnosis or a label.")
PENDING_LIMIT = Spec(
    "hb_pending_limit", "gauge", "How many may wait; beyond it the oldest diagnoses are dropped."
)
PARKED = Spec(
    "hb_parked_labels",
    "gauge",
    "Labels that came before their patient's diagnosis and are waiting for it.",
)
RISEN = Spec(
    "hb_error_rate_rise",
    "gauge",
    "By how much the ensemble's error rate has risen within the last 1,000 labels; 0 while the"
    " difference may be chance (the test of ADWIN).",
)
TARGET = Spec("hb_target", "gauge", "The target rate in the settings: per or fnr.", ("rate",))
ANSWERS = Spec(
    "hb_answers_total",
    "counter",
    "Diagnoses by whether an answer was given or the patient was referred.",
    ("outcome",),
)
MISSED = Spec(
    "hb_miss_ratio",
    "gauge",
    "Share of the labelled patients of a label for whom it had been excluded; only with a target.",
    ("label",),
)
MISS_TARGET = Spec("hb_miss_target", "gauge", "The target of that share.", ("label",))
PREDICTED = Spec(
    "hb_predicted_total",
    "counter",
    "Predictions by label, labelled or not: a shifting mix is an early sign of trouble.",
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
    "Diagnoses, complete or made without a learner that was late.",
    ("complete",),
)
AGE = Spec("hb_state_age_seconds", "gauge", "Age of this worker's view of the state.")

STATE = (
    *ERRORS.values(), ERROR_BOUND, CONFUSION, REGRET, REGRET_BOUND, WEIGHT, ACCURACY, ACCURACY_LOW,
    ACCURACY_HIGH, EXPLORATION, CUBES, LABELLED, TAUGHT, LABELS, CORRECTIONS, UNLEARNED, AMENDABLE,
    AMENDABLE_BYTES, EXPIRED, REPEATED, PENDING,
    PENDING_LIMIT, PARKED, RISEN, TARGET, ANSWERS, MISSED, MISS_TARGET, PREDICTED, DISAGREEMENTS,
    THIN, DECISIONS, FUSIONS,
)  # fmt: skip
"""Everything that depends on the state alone, unlike AGE."""

OUTCOMES = {
    "settled": ("settled",),
    "duplicate": ("label_duplicate",),
    "conflict": ("label_conflict",),
    "unknown": ("parked_label_unknown",),
    "expired": ("label_expired", "label_evicted"),
    "pending_full": ("label_pending_full",),
}
"""The join's counters behind each outcome of a label."""

CORRECTED = {
    "amended": ("amendment_taken", "label_again"),
    "withdrawn": ("withdrawal_taken",),
    "early": ("amendment_matched", "amendment_parked", "amendment_replaced", "withdrawal_parked"),
    "unchanged": ("amendment_duplicate", "withdrawal_unmatched"),
    "final": ("amendment_final", "withdrawal_final", "label_final"),
    "refused": ("amendment_expired", "amendment_evicted", "amendment_pending_full"),
}
"""The join's counters behind each outcome of a label that amends or withdraws another."""


class StateCollector(Collector):
    """Serves the latest overview of a watch; nothing before the first."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of the state and their age."""
        latest = self._watch.latest
        if latest is not None:
            yield from state_metrics(latest)
            yield filled(AGE, [((), time.time() - latest.at)])


def state_metrics(overview: Overview) -> Iterator[Metric]:
    """Return every metric computed from the state."""
    samples = {**_errors(overview.scores), **_learning(overview.scores), **_join(overview)}
    for spec in STATE:
        yield filled(spec, samples[spec])


def _who(name: str) -> Labels:
    return (ENSEMBLE, "") if name == ENSEMBLE else ("learner", name)


def _errors(scores: Scores) -> dict[Spec, Samples]:
    windows = {"all": scores.rates, "1000": scores.recent, "history": scores.history}
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
        ERROR_BOUND: [((name,), value) for name, value in scores.error_bounds.items()],
        CONFUSION: [
            ((*_who(name), scores.labels[truth], scores.labels[predicted]), float(count))
            for name, matrix in scores.confusion.items()
            for truth, row in enumerate(matrix.tolist())
            for predicted, count in enumerate(row)
        ],
        ACCURACY: [(_who(name), share.value) for name, share in scores.accuracy.items()],
        ACCURACY_LOW: [(_who(name), share.low) for name, share in scores.accuracy.items()],
        ACCURACY_HIGH: [(_who(name), share.high) for name, share in scores.accuracy.items()],
        RISEN: [((), scores.risen)],
        TARGET: [((rate,), target) for rate, target in scores.targets.items()],
        ANSWERS: [((outcome,), float(count)) for outcome, count in scores.answers.items()],
        MISSED: [((label,), share) for label, share in scores.missed.items()],
        MISS_TARGET: [((label,), target) for label, target in scores.miss_targets.items()],
    }


def _learning(scores: Scores) -> dict[Spec, Samples]:
    return {
        REGRET: [((regret.comparator, regret.learner), regret.value) for regret in scores.regrets],
        REGRET_BOUND: [
            ((regret.comparator, regret.learner), regret.bound)
            for regret in scores.regrets
            if regret.bound is not None
        ],
        WEIGHT: [((expert,), weight) for expert, weight in scores.weights.items()],
        EXPLORATION: [
            ((name,), share) for name, share in scores.exploration.items() if share is not None
        ],
        CUBES: _by_learner(scores.cubes),
        THIN: _by_learner(scores.thin),
        DECISIONS: _by_learner(scores.instances),
        PREDICTED: [
            ((*_who(name), label), float(count))
            for name, counts in scores.predicted.items()
            for label, count in counts.items()
        ],
        DISAGREEMENTS: [((), float(scores.disagreements))],
    }


def _by_learner(counts: dict[str, int]) -> Samples:
    return [((name,), float(count)) for name, count in counts.items()]


def _join(overview: Overview) -> dict[Spec, Samples]:
    counts = overview.counts
    learned = {ENSEMBLE: overview.scores.labelled, **overview.scores.learned}
    return {
        LABELLED: [(_who(name), float(count)) for name, count in learned.items()],
        TAUGHT: [((), float(overview.scores.taught))],
        LABELS: [
            ((outcome,), float(sum(counts[name] for name in names)))
            for outcome, names in OUTCOMES.items()
        ],
        CORRECTIONS: [
            ((outcome,), float(sum(counts[name] for name in names)))
            for outcome, names in CORRECTED.items()
        ],
        UNLEARNED: [((), float(counts["unlearned"]))],
        AMENDABLE: [((), float(overview.amendable.labels))],
        AMENDABLE_BYTES: [((), float(overview.amendable.bytes))],
        EXPIRED: [((), float(counts["expired"] + counts["evicted"]))],
        REPEATED: [((outcome,), float(n)) for outcome, n in overview.repeated.items()],
        PENDING: [((), float(overview.pending))],
        PENDING_LIMIT: [((), float(overview.limit))],
        PARKED: [((), float(overview.parked))],
        FUSIONS: [
            (("true",), float(counts["diagnosed_complete"])),
            (("false",), float(counts["diagnosed_incomplete"])),
        ],
    }
