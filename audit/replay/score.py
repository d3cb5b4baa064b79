"""How a stream went: error rates of the ensemble and of each learner, and regret with its bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from audit.recording.columns import firsts
from audit.recording.partition_logs import PartitionLogs
from learners.arrays.types import MISSING, Ints
from learners.fusion.base import Verdict
from learners.scores.error_rates import confusion, rates
from learners.theory.bounds import contextual_hedge_regret, hedge_regret
from learners.theory.regret import contextual_regret

ENSEMBLE = "ensemble"


@dataclass(frozen=True, slots=True)
class Score:
    """How the labelled patients were diagnosed.

    confusion   by name, the ensemble's first: (K, K) counts, truth by prediction
    expected    the ensemble's expected loss, in parts
    losses      (P, E) errors of each expert in each context cube that was visited
    """

    confusion: dict[str, Ints]
    expected: int
    losses: Ints

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
        """The pseudo-regret against the best expert of each context cube."""
        if not self.losses.size:
            return 0.0
        return float(contextual_regret(np.array(self.expected), self.losses))

    @property
    def bound(self) -> float:
        """Theorem 2, or 4 with several cubes: what Hedge's pseudo-regret stays below."""
        cubes, experts = self.losses.shape
        if cubes > 1:
            return float(contextual_hedge_regret(self.labelled, experts, cubes))
        return float(hedge_regret(self.labelled, experts))


def _rates(counts: Ints, positive: int) -> dict[str, float | None]:
    error_rates = rates(counts, positive)
    numbers = {"per": error_rates.per, "fpr": error_rates.fpr, "fnr": error_rates.fnr}
    return {name: None if np.isnan(number) else float(number) for name, number in numbers.items()}


def live_score(recorded: Sequence[PartitionLogs]) -> Score:
    """Return how the recorded stream went, from its diagnoses, labels and feedback."""
    settings = recorded[0].settings
    names, K = list(settings.learners), len(settings.labels)
    total = np.zeros((1 + len(names), K, K), np.int64)
    expected = 0
    losses: dict[int, Ints] = {}
    for logs in recorded:
        truth, verdict, heard, cells = _settled(logs)
        predicted = np.concatenate([verdict.labels[:, None], heard], axis=1)
        total += confusion(truth, predicted.T, K)
        expected += int(verdict.expected_loss(truth).sum())
        wrong = (verdict.votes != truth[:, None]) & (verdict.votes >= 0)
        for cell in np.unique(cells).tolist():
            errors = wrong[cells == cell].sum(axis=0)
            losses[cell] = losses.get(cell, np.zeros(wrong.shape[1], np.int64)) + errors
    experts = recorded[0].diagnoses.columns["parts"].shape[1]
    rows = np.array(list(losses.values()), np.int64).reshape(len(losses), experts)
    return Score(dict(zip([ENSEMBLE, *names], total, strict=True)), expected, rows)


class _Settled(NamedTuple):
    """Settled patients: truth, what was decided, each learner's label, and context cube."""

    truth: Ints
    verdict: Verdict
    heard: Ints
    cells: Ints


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
    said = columns["said"][at].astype(np.int64)
    heard = np.stack([column[ids] for column in feedback.values()], axis=1)
    heard = np.where(said == MISSING, heard, said)
    sent = columns["votes"][at].astype(np.int64)
    votes = said if sent.shape == said.shape and (sent == MISSING).all() else sent
    labels = columns["label"][at].astype(np.int64)
    verdict = Verdict.recalled(labels, columns["parts"][at], votes)
    return _Settled(label[ids], verdict, heard, columns["cube"][at])
