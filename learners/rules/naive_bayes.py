"""Naive Bayes: features are taken as independent given the label.

    score_c = ln((n_c + 1) / (n + K)) + sum_j ln P(x_j | c)

Two ways for a real feature, one for a category:

    binned     the unit interval of its scaling (settings) in `bins` equal parts, like the cells of
               the learner's partition; P = (count + 1) / (n_c + bins). A category is a bin of its
               own. Integer counts: order does not matter, partitions merge exactly.
    gaussian   a normal density with the label's own mean and variance, each drawn towards those of
               all rows with the weight of one row, so that the first rows of a label mislead less.
               The present row counts in the statistics of all rows (see `scalers`).
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Bools, Floats, Ints, State
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import LIMIT
from learners.rules.gaussians import Gaussians
from learners.rules.odds import from_scores, parts_of_scores
from learners.rules.states import added, array, nest, part_of, parts_of


class NaiveBayes(LearningRule):
    """Naive Bayes on bins and categories, or on Gaussians and categories.

    likelihood   binned or gaussian
    bins         parts of a real feature's range, for binned
    """

    additive = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        likelihood: str = "gaussian",
        bins: int = 8,
    ) -> None:
        super().__init__(name, space, classes)
        real = space.category_counts == 0
        self.scale_free = likelihood == "gaussian"
        self._counted: Bools = ~real if likelihood == "gaussian" else np.ones_like(real)
        self._sizes: Ints = np.where(real, bins, space.category_counts)
        self.totals: Ints = np.zeros(classes, np.int64)
        self.counts: Ints = np.zeros((space.d, int(self._sizes.max()), classes), np.int64)
        self.gaussians = Gaussians(int((~self._counted).sum()), classes)

    def _digits(self, rows: Floats) -> Ints:
        """Return (n, d) the bin or category of each value."""
        unit = self.space.unit(np.clip(rows, -LIMIT, LIMIT))
        return np.minimum((unit * self._sizes).astype(np.int64), self._sizes - 1)

    def _log_odds(self, rows: Floats) -> Floats:
        n = int(self.totals.sum())
        shares = np.log((self.totals + 1) / (n + self.classes))
        scores = np.tile(shares, (len(rows), 1)) + self.gaussians.scores(self._densities(rows))
        digits = self._digits(rows)
        for j in np.flatnonzero(self._counted).tolist():
            scores += self._log_chances(j)[digits[:, j]]
        return from_scores(scores)

    def _parts(self, rows: Floats) -> Floats:
        parts = np.empty((len(rows), self.space.d, self.classes))
        parts[:, ~self._counted] = self.gaussians.parts(self._densities(rows))
        digits = self._digits(rows)
        for j in np.flatnonzero(self._counted).tolist():
            parts[:, j] = self._log_chances(j)[digits[:, j]]
        return parts_of_scores(parts)

    def _log_chances(self, j: int) -> Floats:
        """Return (bins, K) the logarithms of P(x_j | c)."""
        return np.asarray(np.log((self.counts[j] + 1) / (self.totals + self._sizes[j])))

    def _densities(self, rows: Floats) -> Floats:
        """Return the columns that have a density."""
        return np.clip(np.ascontiguousarray(rows[:, ~self._counted]), -LIMIT, LIMIT)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        self.totals = self.totals + np.bincount(truth, minlength=self.classes)
        digits = self._digits(rows)
        for j in np.flatnonzero(self._counted):
            np.add.at(self.counts[j], (digits[:, j], truth), 1)
        self.gaussians.learn(self._densities(rows), truth)

    def state(self) -> State:
        """Return the counts and the moments."""
        return {
            "totals": self.totals.copy(),
            "counts": self.counts.copy(),
            **nest("gaussians", self.gaussians.state()),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.totals = array(state, "totals", np.int64, self.totals.shape)
        self.counts = array(state, "counts", np.int64, self.counts.shape)
        self.gaussians.restore(part_of(state, "gaussians"))

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        # Counts of all rows already are the count-weighted combination.
        del shares
        return {
            "totals": added(states, "totals"),
            "counts": added(states, "counts"),
            **nest("gaussians", self.gaussians.merged(parts_of(states, "gaussians"))),
        }
