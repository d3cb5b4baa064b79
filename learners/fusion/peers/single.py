"""Best, Average and Worst LL, as rules that can run online.

The paper's tables mean these in hindsight: the LL that turned out best or worst in a run, and the
mean over LLs. That is a matter of counting each LL's errors and belongs to the metrics. Online one
can only follow the LL that is best, or worst, so far ("follow the leader"), or a uniformly drawn
one, whose chance of error is that of the average LL.

State: `[trials_1 … trials_M, errors_1 … errors_M]` per cube, integers.

A leader is found by its rate of errors, counting one right and one wrong answer more than were
seen, so that LLs that speak unequally often compare; equal rates go to the LL named first.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from learners.arrays.tables import CellTable
from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.error_counts import ErrorCounts
from learners.fusion.weighted import WeightedFusion

Which = Literal["best", "average", "worst"]


class SingleLearner(WeightedFusion):
    """Follows one LL: the best or worst so far, or any (`average`)."""

    use = "sample"
    salt = 3

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        which: Which,
        cubes: int | None = 1,
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        if which not in ("best", "average", "worst"):
            raise LearnerError(f"which must be best, average or worst, not {which!r}")
        self._which = which
        self._errors = ErrorCounts(learners, cubes)

    def _weights(self, ballot: Ballot, /) -> Floats:
        if self._which == "average":
            return np.ones(ballot.labels.shape)
        rates = self._errors.error_rates(ballot.cells)
        rates = rates if self._which == "best" else -rates
        leader = np.where(ballot.present, rates, np.inf).argmin(axis=1)
        return np.asarray(leader[:, None] == np.arange(self.learners), np.float64)

    def _learn(self, ballot: Ballot, _fused: FusedPredictions, truth: Ints, /) -> None:
        self._errors.learn(ballot, truth)

    def tables(self) -> Mapping[str, CellTable]:
        """Return the trials and errors of each LL per cube."""
        return {"record": self._errors.table}
