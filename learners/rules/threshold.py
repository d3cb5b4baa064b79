"""A cut on one real feature."""

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.errors import OptionError
from learners.local.features import FeatureSpace
from learners.rules.base import Rule


class Threshold(Rule):
    """Says `above` where the raw value of `feature` is greater than `value`, else `below`."""

    scale_free = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        feature: str,
        value: float,
        above: int,
        below: int,
    ) -> None:
        super().__init__(name, classes)
        if feature not in space.names or space.category_counts[space.names.index(feature)]:
            raise OptionError(
                name, "feature", f"must name a real feature of the learner, not {feature!r}"
            )
        self.column = space.names.index(feature)
        self.value = value
        self.above = above
        self.below = below

    def _predict(self, rows: Floats) -> Ints:
        return np.where(rows[:, self.column] > self.value, self.above, self.below)
