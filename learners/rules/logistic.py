"""Logistic regression by stochastic gradient descent, one step per labelled row.

    p = sigma(w'x),   w += rate * ((y - p) x - l2 w)

If joint, p = sigma(w'x + o), o being the other learners' log-odds: together they then take the step
of one logistic regression over all features, and none sees the others' features.

x are the scaled columns and a constant. With K > 2 labels there is one w per label against the
rest. Plain, fast, never stops adapting: `rate` does not fall, so it follows a drifting stream.
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.joint import Heard, Steps
from learners.rules.odds import by_row, from_heads, heads, parts_of_heads, sigmoid, targets
from learners.rules.scalers import make_scaler
from learners.rules.states import array, nest, part_of, parts_of, weighted


class Logistic(LearningRule):
    """Online logistic regression.

    rate      step size
    l2        pull of the weights towards zero, the constant's excepted
    scaling   online scaling of the real features: zscore, log or rank
    joint     learn what the other learners leave unexplained
    constant  the constant column: below 1, its weight moves the log-odds more slowly
    """

    additive = True
    scale_free = True

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
        constant: float = 1.0,
    ) -> None:
        super().__init__(name, space, classes)
        self.joint = joint
        self.constant = constant
        self.rate = rate
        self.columns = Columns(space)
        self.scaler = make_scaler(scaling, self.columns)
        self.weights: Floats = np.zeros((heads(classes), self.columns.width + 1))
        self.keep: Floats = np.full(self.columns.width + 1, 1.0 - rate * l2)
        self.keep[-1] = 1.0
        self.shrinks = l2 > 0.0

    def _log_odds(self, rows: Floats) -> Floats:
        x = self._inputs(self.scaler.look(self.columns.raw(rows)))
        return from_heads(by_row(x, self.weights.T), self.classes)

    def _inputs(self, scaled: Floats) -> Floats:
        return np.concatenate([scaled, np.full((len(scaled), 1), self.constant)], axis=1)

    def _parts(self, rows: Floats) -> Floats:
        x = self.scaler.look(self.columns.raw(rows))
        parts = x[:, :, None] * self.weights[:, :-1].T
        return parts_of_heads(self.columns.by_feature(parts), self.classes)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        self._learn_beside(rows, truth, Heard.fresh(np.zeros((len(rows), self.classes))))

    def steps(self, rows: Floats, truth: Ints) -> Steps:
        """Return the steps of gradient descent for the rows."""
        return _Descent(self, rows, truth)

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


class _Descent(Steps):
    """One step of gradient descent per row; the rule's weights change in place."""

    def __init__(self, rule: Logistic, rows: Floats, truth: Ints) -> None:
        self._rule = rule
        self._x = rule._inputs(rule.scaler.learn(rule.columns.raw(rows)))
        count = len(rule.weights)
        by_head = [targets(truth, head, rule.classes) for head in range(count)]
        self._y = list(zip(*by_head, strict=True))
        self._row, self._odds = 0, [0.0] * count

    def look(self, row: int) -> list[float]:
        """Return w'x of each head."""
        x = self._x[row]
        self._row, self._odds = row, [float(w @ x) for w in self._rule.weights]
        return self._odds

    def learn(self, offsets: list[float]) -> None:
        """Move each head's weights along the row."""
        rule, x = self._rule, self._x[self._row]
        for head, (target, offset) in enumerate(zip(self._y[self._row], offsets, strict=True)):
            step = rule.rate * (target - sigmoid(self._odds[head] + offset))
            if rule.shrinks:
                rule.weights[head] *= rule.keep
            rule.weights[head] += step * x
