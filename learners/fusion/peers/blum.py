"""Blum's variant of Weighted Majority: Winnow for specialists that may sleep.

Every specialist (here: LL) starts with weight 1 and the EL takes the label with most weight behind
it. When the label comes, every specialist that spoke and was wrong has its weight halved, whatever
the EL said; when the EL itself was wrong, every specialist that spoke and was right has its weight
multiplied by 3/2. Promotions can never add more weight than the halvings of the same instance take
away, because the wrong label had at least as much weight as the right one.

State: how often each LL was promoted and demoted, `[P_1 … P_M, D_1 … D_M]` per cube; the weight is
(3/2)^P (1/2)^D, in the log domain. Whether the EL was wrong is known from its fused label, so the
order of labels does not matter.

The update was not checked against its primary text, of which only the abstract could be reached.

A. Blum, "Empirical support for Winnow and Weighted-Majority algorithms: results on a calendar
scheduling domain", Machine Learning 26, 1997.
"""

from collections.abc import Mapping
from math import log

import numpy as np

from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import Floats, Ints
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.weighted import WeightedFusion, falling_exp

_PROMOTION = log(3 / 2)
_DEMOTION = log(2)


class Blum(WeightedFusion):
    """Halve the wrong ones; when the EL was wrong, raise the right ones by half."""

    def __init__(
        self, learners: int, classes: int, *, cubes: int | None = 1, prefer: int = 0
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        self._table = table_for(cubes, 2 * learners)

    def _weights(self, ballot: Ballot, /) -> Floats:
        rows = self._table.rows(ballot.cells)
        promoted, demoted = rows[:, : self.learners], rows[:, self.learners :]
        return falling_exp(_PROMOTION * promoted - _DEMOTION * demoted, ballot.present)

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        right = ballot.labels == truth[:, None]
        erred = fused.labels != truth
        steps = np.concatenate([right & erred[:, None], ballot.present & ~right], axis=1)
        self._table.add(ballot.cells, steps.astype(np.int64))

    def tables(self) -> Mapping[str, CellTable]:
        """Return the promotions and demotions per cube."""
        return {"steps": self._table}
