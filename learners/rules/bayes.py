"""Bayesian logistic regression: online Laplace steps with a full covariance.

The belief about the weights is N(w, S), at first N(0, prior * I). For scaled columns x (and a
constant, and random Fourier features if wanted):

    m = w'x,  s = S x,  v = x's          mean and variance of the row's log-odds
    sent:  m / sqrt(1 + pi v / 8)        log-odds averaged over the belief (MacKay 1992)
    learn: a = m + v (y - sigma(a))      the posterior mode along x, by four Newton steps
           p = sigma(a),  k = p (1 - p)
           w += (y - p) s,   S -= k / (1 + k v) s s'

(Spiegelhalter and Lauritzen 1990, "Sequential updating of conditional probabilities on directed
graphical structures".) It needs no learning rate and is cautious where it has seen little. It
assumes that the stream does not drift: S only shrinks.

If joint, m + o takes the place of m in the equation for a, o being the log-odds of the other
learners: the row's label is explained by all of them together, and this one learns its part
(backfitting: T. Hastie and R. Tibshirani, "Generalized additive models", Statistical Science 1,
1986).

The covariance of two partitions cannot be averaged like a parameter: their beliefs are multiplied
and the prior they share is divided out, which is what one partition would believe if the steps did
not depend on their order.
"""

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.fourier import FourierFeatures
from learners.rules.joint import Heard, Steps
from learners.rules.odds import (
    by_row,
    dot_rows,
    from_heads,
    heads,
    parts_of_heads,
    sigmoid,
    targets,
)
from learners.rules.scalers import make_scaler
from learners.rules.states import array, nest, part_of, parts_of

NEWTON_STEPS = 4


class BayesianLogistic(LearningRule):
    """Bayesian logistic regression.

    prior     variance of each weight before the first label
    scaling   online scaling of the real features: zscore, log or rank
    fourier   how many random Fourier features to add; 0 is the linear model
    spread    variance of their frequencies; larger bends more
    seed      draws them
    joint     learn what the other learners leave unexplained
    constant  the constant column: below 1, its weight is believed to move the log-odds less
    centred   let Fourier features say nothing about a row whose values are all average
    """

    additive = True
    scale_free = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        prior: float = 2.0,
        scaling: str = "log",
        fourier: int = 0,
        spread: float = 0.1,
        seed: int = 0,
        joint: bool = False,
        constant: float = 1.0,
        centred: bool = False,
    ) -> None:
        super().__init__(name, space, classes)
        self.joint = joint
        self.constant = constant
        self.prior = prior
        self.columns = Columns(space)
        self.scaler = make_scaler(scaling, self.columns)
        self.fourier = FourierFeatures(
            self.columns.width, fourier, seed=seed, spread=spread, centred=centred
        )
        self.width = self.columns.width + 1 + fourier
        self.weights: Floats = np.zeros((heads(classes), self.width))
        self.covariance: Floats = np.tile(prior * np.eye(self.width), (heads(classes), 1, 1))

    def _inputs(self, z: Floats) -> Floats:
        constant = np.full((len(z), 1), self.constant)
        return np.concatenate([z, constant, self.fourier(z)], axis=1)

    def _log_odds(self, rows: Floats) -> Floats:
        x = self._inputs(self.scaler.look(self.columns.raw(rows)))
        return from_heads(by_row(x, self.weights.T) / self._damping(x), self.classes)

    def _damping(self, x: Floats) -> Floats:
        """Return (n, H) what log-odds are divided by, because weights are uncertain."""
        damping = np.empty((len(x), len(self.covariance)))
        for head, covariance in enumerate(self.covariance):
            # Rounding may leave a variance of almost zero just below it.
            v = np.maximum(dot_rows(by_row(x, covariance), x), 0.0)
            damping[:, head] = np.sqrt(1.0 + pi * v / 8.0)
        return damping

    def _parts(self, rows: Floats) -> Floats:
        """Return the parts of the plain columns; Fourier features belong to several at once."""
        z = self.scaler.look(self.columns.raw(rows))
        weights = self.weights[:, : self.columns.width].T
        parts = z[:, :, None] * weights / self._damping(self._inputs(z))[:, None, :]
        return parts_of_heads(self.columns.by_feature(parts), self.classes)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        self._learn_beside(rows, truth, Heard.fresh(np.zeros((len(rows), self.classes))))

    def steps(self, rows: Floats, truth: Ints) -> Steps:
        """Return the Laplace steps for the rows."""
        return _LaplaceSteps(self, rows, truth)

    def state(self) -> State:
        """Return the belief and the scaler's statistics."""
        return {
            "weights": self.weights.copy(),
            "covariance": self.covariance.copy(),
            **nest("scaler", self.scaler.state()),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        self.weights = array(state, "weights", np.float64, self.weights.shape)
        self.covariance = array(state, "covariance", np.float64, self.covariance.shape)
        self.scaler.restore(part_of(state, "scaler"))

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        # Each belief's precision already grows with its rows.
        del shares
        eye = np.eye(self.width)
        precision = -(len(states) - 1) / self.prior * np.tile(eye, (len(self.weights), 1, 1))
        pull = np.zeros((len(self.weights), self.width, 1))
        for state in states:
            inverse = np.linalg.inv(state["covariance"])
            precision += inverse
            pull += inverse @ state["weights"][:, :, None]
        covariance = np.linalg.inv(precision)
        return {
            "weights": (covariance @ pull)[:, :, 0],
            "covariance": (covariance + covariance.transpose(0, 2, 1)) / 2.0,
            **nest("scaler", self.scaler.merged(parts_of(states, "scaler"))),
        }


class _LaplaceSteps(Steps):
    """One Laplace step per row; the rule's belief changes in place, without new arrays."""

    def __init__(self, rule: BayesianLogistic, rows: Floats, truth: Ints) -> None:
        self._beliefs = list(zip(rule.weights, rule.covariance, strict=True))
        self._x = rule._inputs(rule.scaler.learn(rule.columns.raw(rows)))
        count = len(self._beliefs)
        by_head = [targets(truth, head, rule.classes) for head in range(count)]
        self._y = list(zip(*by_head, strict=True))
        self._s: Floats = np.empty((count, rule.width))
        self._outer: Floats = np.empty((rule.width, rule.width))
        self._row, self._projected = 0, [(0.0, 0.0)] * count

    def look(self, row: int) -> list[float]:
        """Return the moderated log-odds of each head."""
        self._row, x = row, self._x[row]
        for head, ((w, S), s) in enumerate(zip(self._beliefs, self._s, strict=True)):
            np.dot(S, x, out=s)
            self._projected[head] = float(w @ x), max(float(x @ s), 0.0)
        return [m / sqrt(1.0 + pi * v / 8.0) for m, v in self._projected]

    def learn(self, offsets: list[float]) -> None:
        """Take the row into each head's belief."""
        for head, (target, offset) in enumerate(zip(self._y[self._row], offsets, strict=True)):
            m, v = self._projected[head]
            self._update(head, v, posterior(m + offset, v, target), target)

    def _update(self, head: int, v: float, p: float, target: float) -> None:
        (w, S), s = self._beliefs[head], self._s[head]
        k = p * (1.0 - p)
        w += (target - p) * s
        # The root goes into s, so that the outer product is symmetric to the last bit.
        s *= sqrt(k / (1.0 + k * v))
        np.multiply(s[:, None], s, out=self._outer)
        S -= self._outer


def posterior(m: float, v: float, y: float) -> float:
    """Return p = sigma(a) at the solution of a = m + v (y - sigma(a)).

    Four steps are enough for v up to about 5. Beyond, which only happens in the first rows, p may
    miss the solution, but it is a probability: the update stays bounded.
    """
    a = m
    for _ in range(NEWTON_STEPS):
        p = sigmoid(a)
        a -= (a - m - v * (y - p)) / (1.0 + v * p * (1.0 - p))
    return sigmoid(a)
