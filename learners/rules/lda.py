"""Linear discriminant analysis on ranks, online.

    u       ranks of the real features in [-1, 1], 0/1 columns of categories
    n_c, s_c, Q    rows and rank sums per label, sum of u u' over all rows
    mean_c  = s_c / (n_c + 1)                               shrunk towards the centre by n/(n+1)
    C       = (prior I + Q - sum_c s_c s_c' / n_c) / n       pooled scatter, started at prior I
    score_c = mean_c' C^-1 u - mean_c' C^-1 mean_c / 2 + ln((n_c + 1) / (n + K))

`prior` is given in units of a rank's own variance (1/3), so 10 means ten rows' worth of scatter.
(Fisher 1936; ranks make it immune to outliers and skewed features: Conover and Iman 1980, "The rank
transformation as a method of discrimination".) Ranks are rounded so that all sums are exact: what
was learned does not depend on how rows were cut into batches.
"""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import OptionError
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.odds import by_row, from_scores, parts_of_scores
from learners.rules.scalers import UNIFORM_DEVIATION, CentredRanks
from learners.rules.states import added, array, nest, part_of, parts_of


class RankLda(LearningRule):
    """Linear discriminant analysis on ranks.

    prior      starting scatter, in rows
    capacity   values per level of the rank sketch: ranks of that many rows are exact
    """

    additive = True
    scale_free = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        prior: float = 10.0,
        capacity: int = 256,
    ) -> None:
        super().__init__(name, space, classes)
        if capacity % 2:
            raise OptionError(name, "capacity", "must be even")
        self.columns = Columns(space)
        self.scaler = CentredRanks(self.columns, capacity)
        self.prior = prior * UNIFORM_DEVIATION**2
        self.counts: Ints = np.zeros(classes, np.int64)
        self.sums: Floats = np.zeros((classes, self.columns.width))
        self.products: Floats = np.zeros((self.columns.width, self.columns.width))
        self._solved: tuple[Floats, Floats] | None = None

    def _log_odds(self, rows: Floats) -> Floats:
        directions, constants = self._discriminants()
        u = self.scaler.look(self.columns.raw(rows))
        return from_scores(by_row(u, directions) + constants)

    def _parts(self, rows: Floats) -> Floats:
        directions, _ = self._discriminants()
        u = self.scaler.look(self.columns.raw(rows))
        return parts_of_scores(self.columns.by_feature(u[:, :, None] * directions))

    def _discriminants(self) -> tuple[Floats, Floats]:
        """Return (width, K) directions and (K,) constants; solved once per change."""
        if self._solved is None:
            n = int(self.counts.sum())
            own = self.sums / np.maximum(self.counts, 1)[:, None]
            scatter = self.products - self.sums.T @ own
            scatter[np.diag_indices_from(scatter)] += self.prior
            means = self.sums / (self.counts + 1)[:, None]
            directions = np.asarray(np.linalg.solve(scatter / max(n, 1), means.T), np.float64)
            constants = np.log((self.counts + 1) / (n + self.classes))
            constants -= 0.5 * (means.T * directions).sum(axis=0)
            self._solved = directions, np.asarray(constants, np.float64)
        return self._solved

    def _learn(self, rows: Floats, truth: Ints) -> None:
        u = self.scaler.learn(self.columns.raw(rows))
        members = (truth == np.arange(self.classes)[:, None]).astype(np.float64)
        self.counts = self.counts + np.bincount(truth, minlength=self.classes)
        self.sums = self.sums + members @ u
        self.products = self.products + u.T @ u
        self._solved = None

    def state(self) -> State:
        """Return the sums and the rank sketch."""
        return {
            "counts": self.counts.copy(),
            "sums": self.sums.copy(),
            "products": self.products.copy(),
            **nest("ranks", self.scaler.state()),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.counts = array(state, "counts", np.int64, self.counts.shape)
        self.sums = array(state, "sums", np.float64, self.sums.shape)
        self.products = array(state, "products", np.float64, self.products.shape)
        self.scaler.restore(part_of(state, "ranks"))
        self._solved = None

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        # Sums of all rows already are the count-weighted combination.
        del shares
        return {
            **{key: added(states, key) for key in ("counts", "sums", "products")},
            **nest("ranks", self.scaler.merged(parts_of(states, "ranks"))),
        }
