"""What learning and linear rules compute on: the learner's rows as plain columns.

A real feature is one column, a categorical one becomes a 0/1 column per category
(`FeatureSpace.expand`). Only real columns are scaled online: a 0/1 column is on a fair scale
already, and scaling it by its variance would blow up rare categories.

Values beyond 1e100 are cut there, so that squares stay finite.
"""

import numpy as np

from learners.arrays.types import Bools, Floats
from learners.local.features import FeatureSpace

LIMIT = 1e100


class Columns:
    """The expanded columns of a feature space.

    width   how many there are
    real    (width,) which of them hold raw values
    """

    def __init__(self, space: FeatureSpace) -> None:
        self.space = space
        self.width = len(space.expanded_names)
        self.real: Bools = np.repeat(
            space.category_counts == 0, np.maximum(space.category_counts, 1)
        )
        self.all_real = bool(self.real.all())
        self._real_features: Bools = space.category_counts == 0

    def raw(self, rows: Floats) -> Floats:
        """Return (n, width) columns with raw values."""
        columns = rows if self.all_real else self.space.expand(rows)
        # Row after row in memory: for other layouts numpy may round sums and logarithms otherwise.
        return np.clip(np.ascontiguousarray(columns), -LIMIT, LIMIT)

    def by_feature(self, parts: Floats) -> Floats:
        """Add up (n, width, …) parts of columns to (n, d, …) parts of features."""
        if self.all_real:
            return parts
        counts = np.maximum(self.space.category_counts, 1)
        return np.asarray(np.add.reduceat(parts, np.cumsum(counts) - counts, axis=1))

    def unit(self, rows: Floats) -> Floats:
        """Return (n, width) columns with real features scaled into [0, 1] by the settings."""
        unit = self.space.unit(np.clip(np.ascontiguousarray(rows), -LIMIT, LIMIT))
        if self.all_real:
            return unit
        columns = self.space.expand(rows)
        columns[:, self.real] = unit[:, self._real_features]
        return columns
