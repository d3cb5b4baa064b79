"""The paper's simplest rule: always the same label."""

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError
from learners.rules.base import Rule


class Constant(Rule):
    """Says `label`, whatever the row."""

    scale_free = True

    def __init__(self, label: int, *, classes: int, name: str = "constant") -> None:
        super().__init__(name, classes)
        if not 0 <= label < classes:
            raise LearnerError(f"rule {name}: label {label} is outside 0 … {classes - 1}")
        self.label = label

    def _predict(self, rows: Floats) -> Ints:
        return np.full(len(rows), self.label, np.int64)
