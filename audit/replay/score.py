"""How a stream went: error rates of the ensemble and of each learner, and regret with its bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from audit.recording.columns import firsts
from audit.recording.partition_logs import PartitionLogs
from learners.arrays.tables import table_for
from learners.arrays.types import MISSING, Bools, Ints
from learners.fusion.base import UNKNOWN, FusedPredictions
from learners.fusion.late_labels import LateLabels
from learners.scores.error_rates import confusion, rates
from learners.theory.promises import regret_bound
from learners.theory.regret import awake_regret
from settings.building import fusion

ENSEMBLE = "ensemble"
_UNHEARD = 1 << 62
"""A cube of their own for patients whose context did not come."""


@dataclass(frozen=True, slots=True)
class Score:
    """How the labelled patients were diagnosed.

    confusion   by name, the ensemble's first: (K, K) counts, truth by prediction
    regrets     (P, 2 + 2E) of each context cube that was visited, as `EnsembleLearner.regret`
    bound       what the regret stays below; None where nothing is promised
    """

    confusion: dict[str, Ints]
    regrets: Ints
    bound: float | None

    @property
    def labelled(self) -> int:
        """Return how many labelled patients there were."""
        return int(self.confusion[ENSEMBLE].sum())

    def report(self, positive: int) -> dict[str, Any]:
        """Return rates and regret as plain data; None where there is nothing to divide."""
        return {
            "labelled": self.labelled,
            "rates": {name: _rates(counts, positive) for name, counts in self.confusion.items()},
            "regret": self.regret,
            "regret_bound": self.bound,
        }

    @property
    def regret(self) -> float:
        """The pseudo-regret against the best expert of each context cube, where it took part."""
        experts = (self.regrets.shape[1] - 2) // 2
        wrong, expected = self.regrets[:, 2 : 2 + experts], self.regrets[:, 2 + experts :]
        return float(awake_regret(expected, wrong).sum()) if len(self.regrets) else 0.0


def _rates(counts: Ints, positive: int) -> dict[str, float | None]:
    error_rates = rates(counts, positive)
    numbers = {"per": error_rates.per, "fpr": error_rates.fpr, "fnr": error_rates.fnr}
    return {name: None if np.isnan(number) else float(number) for name, number in numbers.items()}


def live_score(recorded: Sequence[PartitionLogs]) -> Score:
    """Return how the recorded stream went, from its diagnoses, labels and feedback."""
    settings = recorded[0].settings
    names, K = list(settings.learners), len(settings.labels)
    experts = recorded[0].diagnoses.columns["parts"].shape[1]
    total = np.zeros((1 + len(names), K, K), np.int64)
    regret, late = table_for(None, 2 + 2 * experts), LateLabels(experts, None)
    for logs in recorded:
        settled = _settled(logs)
        truth, fused, heard, cells, _, past = settled
        predicted = np.concatenate([fused.labels[:, None], heard], axis=1)
        total += confusion(truth[~past], predicted[~past].T, K)
        regret.add(cells, _regrets(fused, truth))
        _count_late(late, settled)
    visited, rows = regret.items()
    bound = None
    # Which learners explored is not in the diagnoses' columns, and the bound is on the others.
    if not settings.ensemble.active:
        delays, partitions = late.table.rows(visited), len(recorded)
        corrected = any(
            log.columns["amends"].any() for logs in recorded for log in logs.feedback.values()
        )
        bound = regret_bound(
            fusion(settings), rows[:, 0], delays, partitions=partitions, corrected=corrected
        )
    return Score(dict(zip([ENSEMBLE, *names], total, strict=True)), rows, bound)


def _regrets(fused: FusedPredictions, truth: Ints) -> Ints:
    """Return each patient's row of `EnsembleLearner.regret`."""
    awake, expected = fused.votes >= 0, fused.expected_loss(truth)[:, None]
    wrong = (fused.votes != truth[:, None]) & awake
    return np.concatenate([np.ones_like(expected), expected, wrong, awake * expected], axis=1)


def _count_late(late: LateLabels, settled: "_Settled") -> None:
    """Count how late the labels came that were learned with what their decision rested on."""
    assert settled.fused.basis is not None  # noqa: S101 - recalled with it
    with_basis = settled.fused.basis[:, 0] != UNKNOWN
    late.learn(
        settled.cells[with_basis], settled.fused.basis[with_basis], settled.behind[with_basis]
    )


class _Settled(NamedTuple):
    """Settled patients: truth, what was decided, each learner's label, and context cube.

    `behind` tells whether a learner spoke only after the decision, `past` marks past patients, who
    are not in the rates.
    """

    truth: Ints
    fused: FusedPredictions
    heard: Ints
    cells: Ints
    behind: Bools
    past: Bools


def _settled(logs: PartitionLogs) -> _Settled:
    size, columns = len(logs.names.ids), logs.diagnoses.columns
    diagnosis = firsts(columns["id"], size)
    label = np.full(size, MISSING, np.int64)
    feedback = {}
    for name, log in logs.feedback.items():
        label[log.columns["id"]] = log.columns["label"]
        feedback[name] = np.full(size, MISSING, np.int64)
        feedback[name][log.columns["id"]] = log.columns["predicted"]
    ids = np.flatnonzero((diagnosis >= 0) & (label != MISSING))
    at = diagnosis[ids]
    predicted = columns["predicted"][at].astype(np.int64)
    heard = np.stack([column[ids] for column in feedback.values()], axis=1)
    heard = np.maximum(np.where(predicted == MISSING, heard, predicted), MISSING)
    predicted = np.maximum(predicted, MISSING)
    sent = columns["votes"][at].astype(np.int64)
    votes = predicted if sent.shape == predicted.shape and (sent == MISSING).all() else sent
    labels = columns["label"][at].astype(np.int64)
    fused = FusedPredictions.recalled(labels, columns["parts"][at], votes, columns["basis"][at])
    behind = np.asarray(((heard >= 0) & (predicted < 0)).any(axis=1))
    cells = np.where(columns["cube"][at] < 0, _UNHEARD, columns["cube"][at])
    return _Settled(label[ids], fused, heard, cells, behind, columns["history"][at])
