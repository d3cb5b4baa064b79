"""The paper's simplest rule: always the same label."""

import numpy as np

from learners.features import FeatureSpace
from learners.rules.base import Rule
from learners.types import Floats, Ints


class Constant(Rule):
    """Says `label`, whatever the row."""

    def __init__(self, name: str, space: FeatureSpace, classes: int, label: int) -> None:
        super().__init__(name, space, classes)
        self.label = label

    def _predict(self, rows: Floats) -> Ints:
        return np.full(len(rows), self.label, np.int64)
