"""AdaBoost as a fusion of given LLs, online and offline.

Boosting trains its hypotheses; here the LLs train themselves, so all that is left of it is how
their votes are weighted. With e_m the weighted error of LL m, its vote weighs ln((1 - e_m)/e_m) +
ln(K - 1): the second term, zero for two labels, is that of SAMME, so that an LL better than
guessing among K labels counts as good. A negative weight is a vote against; its share in the
fused shows as zero.

Online (`OnlineAdaBoost`) after Oza and Russell: an instance comes with importance lambda = 1 and
visits the LLs in order. If LL m is right, lambda is added to its sum `right` and then scaled by
(right + wrong)/(2 right); else added to `wrong` and scaled by (right + wrong)/(2 wrong): the next
LL sees it lighter or heavier. e_m = wrong/(right + wrong), with half an instance added to both so
that an LL without errors has a finite weight. An LL that sent nothing is passed by.
State: `[right_1 … right_M, wrong_1 … wrong_M]` per cube: a fold over labels in order. Sums of
several partitions add up.

Offline (`boosted_weights`): the classic rounds over a table of LL labels, for `FixedVote`.

The online update is the one River implements from the same paper; the paper itself, and SAMME's,
were not at hand to check it against.

N. Oza and S. Russell, "Online bagging and boosting", AISTATS 2001. Y. Freund and R. Schapire, "A
decision-theoretic generalization of on-line learning and an application to boosting", J. Computer
and System Sciences 55(1), 1997. J. Zhu, H. Zou, S. Rosset and T. Hastie, "Multi-class AdaBoost",
Statistics and Its Interface 2, 2009.
"""

from collections.abc import Mapping
from math import log

import numpy as np

from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import MISSING, Floats, Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.peers.fixed import SignedVote

_HALF = 0.5


class OnlineAdaBoost(SignedVote):
    """Oza and Russell's online boosting of the LLs' votes."""

    def __init__(
        self, learners: int, classes: int, *, cubes: int | None = 1, prefer: int = 0
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        self._table = table_for(cubes, 2 * learners, np.float64)

    def _strengths(self, ballot: Ballot, /) -> Floats:
        rows = self._table.rows(ballot.cells)
        right, wrong = rows[:, : self.learners], rows[:, self.learners :]
        return np.asarray(np.log((right + _HALF) / (wrong + _HALF)) + log(self.classes - 1))

    def _learn(self, ballot: Ballot, _fused: FusedPredictions, truth: Ints, /) -> None:
        cells, which = np.unique(ballot.cells, return_inverse=True)
        sums = self._table.rows(cells).tolist()
        # A handful of additions per LL, each needing the one before: plain floats are faster than
        # arrays here, and the same bits however the stream is cut.
        answers = zip(which.tolist(), ballot.labels.tolist(), truth.tolist(), strict=True)
        for cell, votes, label in answers:
            _boost(sums[cell], votes, label, self.learners)
        self._table.put(cells, np.array(sums))

    def tables(self) -> Mapping[str, CellTable]:
        """Return the importance each LL got right and wrong, per cube."""
        return {"importance": self._table}


def _boost(sums: list[float], votes: list[int], label: int, learners: int) -> None:
    importance = 1.0
    for m, vote in enumerate(votes):
        if vote == MISSING:
            continue
        place = m if vote == label else m + learners
        sums[place] += importance
        importance *= (sums[m] + sums[m + learners]) / (2.0 * sums[place])


def boosted_weights(labels: Ints, truth: Ints, classes: int, rounds: int | None = None) -> Floats:
    """Return the vote weights (M,) that AdaBoost gives LLs whose `labels` (N, M) are known.

    In each round the LL with the smallest weighted error gets ln((1 - e)/e) + ln(K - 1) more
    weight, and the instances it got wrong become heavier by that; rounds end when no LL is better
    than guessing. `rounds` is M unless given. An LL without an error outweighs all others.

        >>> truth = np.array([0, 0, 1, 1])
        >>> votes = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]])
        >>> boosted_weights(votes, truth, classes=2).round(2).tolist()
        [1.1, 1.61, 1.39]
    """
    if not len(truth) or labels.shape[0] != len(truth):
        raise LearnerError("boosting needs at least one labelled instance, and a label for each")
    wrong = labels != truth[:, None]
    log_importance = np.zeros(len(truth))
    weights = np.zeros(labels.shape[1])
    # A perfect LL counts as having got half an instance wrong.
    floor = _HALF / (len(truth) + 1.0)
    for _ in range(rounds or labels.shape[1]):
        importance = np.exp(log_importance - log_importance.max())
        errors = importance @ wrong / importance.sum()
        best = int(errors.argmin())
        if errors[best] >= 1.0 - 1.0 / classes:
            break
        error = max(float(errors[best]), floor)
        gain = log((1.0 - error) / error) + log(classes - 1)
        weights[best] += gain
        log_importance += gain * wrong[:, best]
    return weights
