"""Back-off: a thin cube borrows from the coarser cells around it.

A rule's mean in a cube is smoothed towards its mean in the next coarser cell, which is smoothed in
turn, up to the whole space: `mean_0 = (S_0 + k mean_1) / (N_0 + k)` with `k` pseudo-trials; above
the whole space stands 1/2. A cube with many trials trusts its own counts, one with none follows the
coarser cells: so a rule that learned something general is used where no cube has seen enough.

None of the paper's bounds covers this. It suits full feedback: under bandit feedback a rule's
coarse mean is taken over the instances it was chosen for, and so looks better than it is.

The coarse counts are sums of the cubes' counts: a cache, rebuilt from the table, not state.
"""

import numpy as np

from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.local.partition import Partition

_PRIOR_MEAN = 0.5


class Backoff:
    """Coarse counts of one partition and the smoothed means that follow from them."""

    def __init__(self, partition: Partition, rules: int, pseudo_trials: float) -> None:
        self._rules = rules
        self._k = pseudo_trials
        self._levels = [
            (level, table_for(level.size, 2 * rules))
            for level in (partition.coarser if pseudo_trials else ())
        ]

    def means(
        self, cubes: Ints, trials: Floats, successes: Floats, elsewhere: "Backoff | None" = None
    ) -> Floats:
        """Return (F, n) smoothed means; `trials` and `successes` are the cubes' own, (F, n).

        `elsewhere` holds coarse counts of other partitions, to be added.
        """
        F = self._rules
        mean = np.full((F, len(cubes)), _PRIOR_MEAN)
        for index in reversed(range(len(self._levels))):
            level, table = self._levels[index]
            coarse = level.cells(cubes)
            counts = table.rows(coarse).T
            if elsewhere is not None:
                counts = counts + elsewhere._levels[index][1].rows(coarse).T
            mean = (counts[F : 2 * F] + self._k * mean) / (counts[:F] + self._k)
        return np.asarray((successes[:F] + self._k * mean) / (trials + self._k))

    def count(
        self,
        cubes: Ints,
        rules: Ints,
        correct: Bools,
        tried: Bools | None,
        bandit: bool,
        *,
        sign: int = 1,
    ) -> None:
        """Add labels, or take them back, as in `Iup.learn`."""
        if not self._levels:
            return
        used = np.ones_like(correct) if tried is None else tried
        if bandit:
            used = used & (np.arange(self._rules) == rules[:, None])
        deltas = np.concatenate([used, used & correct], axis=1).astype(np.int64)
        self.add(cubes, sign * deltas)

    def rebuild(self, table: CellTable) -> None:
        """Recompute the coarse counts from the cubes' counts."""
        for index, (level, coarse) in enumerate(self._levels):
            self._levels[index] = level, table_for(level.size, coarse.width)
        cubes, rows = table.items()
        self.add(cubes, rows)

    def add(self, cubes: Ints, rows: Ints) -> None:
        """Add the counts of cubes; a row may hold more than trials and successes."""
        deltas = rows[:, : 2 * self._rules]
        for level, table in self._levels:
            table.add(level.cells(cubes), deltas)
