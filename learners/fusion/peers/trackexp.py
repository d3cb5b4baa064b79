"""Herbster and Warmuth's TrackExp: fixed share, for streams whose best LL changes.

After each label, with n = M LLs, loss l_i of LL i and its weight w_i:

    loss update     w_i <- w_i exp(-rate l_i), then scaled to sum to one
    share update    w_i <- (1 - share) w_i + share/(n - 1) sum_{j != i} w_j

Sharing keeps every weight at share/(n - 1) of the others' or more, so a weight cannot vanish and
an LL that becomes good again comes back quickly. For the same reason the plain, linear domain is
safe here. The label with most weight behind it wins.

State: `[labelled instances, w_1 … w_M]` per cube: a fold over labels in order, the same however the
stream is cut into batches.

The update was not checked against its primary text.

M. Herbster and M. Warmuth, "Tracking the best expert", Machine Learning 32, 1998 (Figure 1,
Fixed-share).
"""

from collections.abc import Mapping
from math import exp, log

import numpy as np

from learners.arrays.rounds import Rounds, mean_by_count
from learners.arrays.tables import CellTable, Rows, table_for
from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.weighted import WeightedFusion


class TrackExp(WeightedFusion):
    """Weighted majority by fixed share.

    rate    eta: an error multiplies a weight by exp(-rate)
    share   alpha: the part of each weight that goes to the other LLs after each label. About the
            number of changes of the best LL per instance
    """

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        cubes: int | None = 1,
        rate: float = log(2),
        share: float = 0.01,
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        if not 0.0 <= rate <= 100.0:
            raise LearnerError(f"rate must lie in 0..100, not {rate}")
        if not 1e-9 <= share <= 0.5:
            raise LearnerError(f"share must lie in 1e-9..0.5, not {share}")
        self._penalty = exp(-rate)
        self._gift = share / (learners - 1) if learners > 1 else 0.0
        self._kept = 1.0 - share - self._gift if learners > 1 else 1.0
        start = [0.0] + [1.0 / learners] * learners
        self._table = table_for(cubes, 1 + learners, np.float64, start)

    def _weights(self, ballot: Ballot, /) -> Floats:
        return np.asarray(self._table.rows(ballot.cells)[:, 1:])

    def _learn(self, ballot: Ballot, _fused: FusedPredictions, truth: Ints, /) -> None:
        plan = Rounds.of(ballot.cells)
        wrong = (ballot.labels != truth[:, None]) & ballot.present
        factors = np.where(wrong, self._penalty, 1.0)[plan.order]
        rows = self._table.rows(plan.cells)
        rows[:, 0] += plan.counts
        weights = rows[:, 1:].copy()
        for size, part in plan:
            now = weights[:size]
            now *= factors[part]
            # What an LL gives to the others and gets from them, in one step; weights sum to one.
            now *= self._kept / now.sum(axis=1, keepdims=True)
            now += self._gift
        rows[:, 1:] = weights
        self._table.put(plan.cells, rows)

    def tables(self) -> Mapping[str, CellTable]:
        """Return [labelled instances, w_1 … w_M] per cube."""
        return {"weights": self._table}

    def pooled(self, _name: str, rows: Rows, /) -> Rows:
        """Pool by the mean weighted by labelled instances."""
        return mean_by_count(rows)
