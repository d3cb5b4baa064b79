"""Logistic regression by stochastic gradient descent, one step per labelled row.

    p = sigma(w'x),   w += rate * ((y - p) x - l2 w)

If joint, p = sigma(w'x + o), o being the other learners' log-odds: together they then
take the step of one logistic regression over all features, and none sees the others' features.

x are the scaled columns and a constant 1. With K > 2 labels there is one w per label against the
rest. Plain, fast, never stops adapting: `rate` does not fall, so it follows a drifting stream.
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.odds import beside, by_row, from_heads, heads, sigmoid, targets
from learners.rules.scalers import make_scaler
from learners.rules.states import array, nest, part_of, parts_of, weighted


class Logistic(LearningRule):
    """Online logistic regression.

    rate      step size
    l2        pull of the weights towards zero, the constant's excepted
    scaling   online scaling of the real features: zscore, log or rank
    joint     learn what the other learners leave unexplained
    """

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        rate: float = 0.2,
        l2: float = 0.0,
        scaling: str = "zscore",
        joint: bool = False,
    ) -> None:
        super().__init__(name, space, classes)
        self.joint = joint
        self.rate = rate
        self.columns = Columns(space)
        self.scaler = make_scaler(scaling, self.columns)
        self.weights: Floats = np.zeros((heads(classes), self.columns.width + 1))
        self.keep: Floats = np.full(self.columns.width + 1, 1.0 - rate * l2)
        self.keep[-1] = 1.0
        self.shrinks = l2 > 0.0

    def _log_odds(self, rows: Floats) -> Floats:
        x = _with_constant(self.scaler.look(self.columns.raw(rows)))
        return from_heads(by_row(x, self.weights.T), self.classes)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        self._learn_beside(rows, truth, np.zeros((len(rows), self.classes)))

    def _learn_beside(self, rows: Floats, truth: Ints, others: Floats) -> None:
        x = _with_constant(self.scaler.learn(self.columns.raw(rows)))
        for head, w in enumerate(self.weights):
            offsets = beside(others, head, self.classes)
            self._descend(w, x, targets(truth, head, self.classes), offsets)

    def _descend(self, w: Floats, x: Floats, y: list[float], others: list[float]) -> None:
        """Take one step per row; `w` changes in place."""
        for row, target, offset in zip(x, y, others, strict=True):
            step = self.rate * (target - sigmoid(float(w @ row) + offset))
            if self.shrinks:
                w *= self.keep
            w += step * row

    def state(self) -> State:
        """Return the weights and the scaler's statistics."""
        return {"weights": self.weights.copy(), **nest("scaler", self.scaler.state())}

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.weights = array(state, "weights", np.float64, self.weights.shape)
        self.scaler.restore(part_of(state, "scaler"))

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        scaler = self.scaler.merged(parts_of(states, "scaler"))
        return {"weights": weighted(states, "weights", shares), **nest("scaler", scaler)}


def _with_constant(x: Floats) -> Floats:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)
