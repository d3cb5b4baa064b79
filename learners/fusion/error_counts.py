"""What the EL counts for each local learner (LL): its predictions, and how many were wrong."""

import numpy as np

from learners.arrays.tables import table_for
from learners.arrays.types import Floats, Ints
from learners.fusion.base import Ballot


class ErrorCounts:
    """Integers `[trials_1 … trials_M, errors_1 … errors_M]` per cube."""

    def __init__(self, learners: int, cubes: int | None) -> None:
        self.table = table_for(cubes, 2 * learners)
        self._learners = learners

    def error_rates(self, cells: Ints) -> Floats:
        """Return (n, M) rates of errors, with one right and one wrong answer added."""
        rows = self.table.rows(cells)
        return np.asarray((rows[:, self._learners :] + 1.0) / (rows[:, : self._learners] + 2.0))

    def learn(self, ballot: Ballot, truth: Ints) -> None:
        """Count the predictions of the LLs that are present."""
        wrong = (ballot.labels != truth[:, None]) & ballot.present
        counted = np.concatenate([ballot.present, wrong], axis=1)
        self.table.add(ballot.cells, counted.astype(np.int64))
