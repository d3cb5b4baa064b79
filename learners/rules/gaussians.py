"""One normal density per label and column, with running means and variances.

    a, b    mean and variance of all rows, the present one included
    n_c, m_c, M_c     the label's rows, their mean, their sum of squared deviations
    mean      (n_c m_c + a) / (n_c + 1)
    variance  (M_c + b) / (n_c + 1)

A column that has not varied yet says nothing.
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.rules.running_variance import Moments
from learners.rules.states import nest, part_of, parts_of


class Gaussians:
    """Normal densities of `width` columns for each label."""

    def __init__(self, width: int, classes: int) -> None:
        self.pooled = Moments(width)
        self.by_label = [Moments(width) for _ in range(classes)]

    def scores(self, values: Floats) -> Floats:
        """Return (n, K) the log-densities of the rows, summed over the columns.

        Constants that are the same for all labels are left out.
        """
        spread = self.pooled.look(values)
        scores = np.zeros((len(values), len(self.by_label)))
        for c, own in enumerate(self.by_label):
            terms = _log_densities(values, spread.offset, spread.variance, own)
            for column in terms.T:  # the order of the sum must not depend on the batch
                scores[:, c] += column
        return scores

    def parts(self, values: Floats) -> Floats:
        """Return (n, width, K) what `scores` sums over the columns."""
        spread = self.pooled.look(values)
        terms = [
            _log_densities(values, spread.offset, spread.variance, own) for own in self.by_label
        ]
        return np.stack(terms, axis=2)

    def learn(self, values: Floats, truth: Ints) -> None:
        """Add rows, each to its label's moments and to those of all rows."""
        self.pooled.learn(values)
        for c, own in enumerate(self.by_label):
            rows_of_label = values[truth == c]
            if len(rows_of_label):
                own.learn(rows_of_label)

    def state(self) -> State:
        """Return all moments."""
        parts = {"all": self.pooled, **{str(c): own for c, own in enumerate(self.by_label)}}
        return {k: v for name, part in parts.items() for k, v in nest(name, part.state()).items()}

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.pooled.restore(part_of(state, "all"))
        for c, own in enumerate(self.by_label):
            own.restore(part_of(state, str(c)))

    def merged(self, states: Sequence[State]) -> State:
        """Return the moments of all rows of several partitions."""
        names = ["all", *(str(c) for c in range(len(self.by_label)))]
        return {
            key: value
            for name in names
            for key, value in nest(name, Moments.merged(parts_of(states, name))).items()
        }


def _log_densities(values: Floats, offset: Floats, variance: Floats, own: Moments) -> Floats:
    """Return (n, width) log-densities under one label; `offset`, `variance` are of all rows."""
    n = own.count
    mean = own.shift + own.total / max(n, 1)
    scatter = np.maximum(own.squares - own.total * own.total / max(n, 1), 0.0)
    width = (scatter + variance) / (n + 1)
    # x - (n m + a) / (n + 1), written with the small differences x - m and x - a.
    distance = ((values - mean) * n + offset) / (n + 1)
    varies = variance > 0.0
    safe = np.where(varies, width, 1.0)
    return np.where(varies, -0.5 * (np.log(safe) + distance * distance / safe), 0.0)
