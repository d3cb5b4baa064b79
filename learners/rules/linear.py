"""A fixed linear classifier: weights and bias from the settings file.

    score_k = w_k'x + b_k,  the label with the largest score wins, ties go to the smaller index

x are the learner's columns by name (`age`, and `sex=f`, `sex=m` for a categorical feature), raw or
scaled into [0, 1] by the settings. Two labels may share one score: label 1 where it is above 0.
"""

from collections.abc import Mapping

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError, OptionError
from learners.local.features import FeatureSpace
from learners.rules.base import Rule
from learners.rules.expanded_columns import LIMIT, Columns
from learners.rules.odds import by_row, from_heads, from_scores, parts_of_heads, parts_of_scores


class Linear(Rule):
    """A linear classifier.

    weights   one mapping of column name to weight per label, or a single one for label 1 of two;
              columns that are not named weigh nothing
    bias      one number per mapping
    inputs    raw, or unit for values scaled into [0, 1]
    softmax   with more than two labels: whether the softmax of the scores are the probabilities, so
              that log-odds follow from it; else each score is its label's log-odds
    """

    additive = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        weights: tuple[Mapping[str, float], ...],
        bias: tuple[float, ...],
        inputs: str = "raw",
        softmax: bool = True,
    ) -> None:
        super().__init__(name, classes)
        self.space = space
        if len(weights) != len(bias) or len(weights) not in (classes, 1 if classes == 2 else -1):
            raise LearnerError(f"rule {name}: options weights and bias must cover every label")
        self.columns = Columns(space)
        self.weights: Floats = np.array([self._vector(named) for named in weights]).T
        self.bias: Floats = np.array(bias, np.float64)
        if not (np.abs(np.append(self.weights, self.bias)) <= LIMIT).all():
            raise LearnerError(f"rule {name}: weights and bias must be finite numbers")
        self.inputs = inputs
        self.scale_free = inputs == "raw"
        self.softmax = softmax

    def _vector(self, named: Mapping[str, float]) -> Floats:
        names = self.space.expanded_names
        unknown = set(named) - set(names)
        if unknown:
            raise OptionError(
                self.name,
                "weights",
                f"names unknown columns {', '.join(sorted(unknown))};"
                f" the learner has {', '.join(names)}",
            )
        return np.array([float(named.get(column, 0.0)) for column in names])

    def _inputs(self, rows: Floats) -> Floats:
        return self.columns.unit(rows) if self.inputs == "unit" else self.columns.raw(rows)

    def _scores(self, rows: Floats) -> Floats:
        return by_row(self._inputs(rows), self.weights) + self.bias

    def _parts(self, rows: Floats) -> Floats:
        parts = self.columns.by_feature(self._inputs(rows)[:, :, None] * self.weights)
        if parts.shape[2] == 1:
            return parts_of_heads(parts, 2)
        return parts_of_scores(parts) if self.softmax or self.classes == 2 else parts

    def _predict(self, rows: Floats) -> Ints:
        scores = self._scores(rows)
        return (scores[:, 0] > 0.0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)

    def _log_odds(self, rows: Floats) -> Floats:
        scores = self._scores(rows)
        if scores.shape[1] == 1:
            return from_heads(scores, 2)
        return from_scores(scores) if self.softmax or self.classes == 2 else scores
