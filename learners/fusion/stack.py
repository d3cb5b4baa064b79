"""An online Bayesian logistic stack of the LLs' log-odds.

The EL learns how much each LL's log-odds are worth, and a constant: a logistic regression on
x = (lo_1 … lo_M, 1) with a Gaussian belief over its weights, mean w and covariance S.

    decide   m = w'x,  v = x'Sx,  fused log-odds = m / sqrt(1 + pi v / 8)
    learn    solve a = m + v (y - s(a)) for a (Newton), p = s(a), k = p (1 - p),
             w += (y - p) S x,   S -= k/(1 + k v) (S x)(S x)'

with s the logistic function and y = 1 if the label came true: a Laplace step that keeps the belief
Gaussian (D. Spiegelhalter and S. Lauritzen, "Sequential updating of conditional probabilities on
directed graphical structures", Networks 20, 1990). The moderated output is D. MacKay's ("The
evidence framework applied to classification networks", Neural Computation 4, 1992), stacking
D. Wolpert's ("Stacked generalization", Neural Networks 5, 1992).

With two labels there is one stack, for label 1 against label 0. With K > 2 there is one per label,
and the softmax of their outputs are the chances: the labels share one likelihood, so a stack learns
nothing where another explains the label already. The mode is then that of all a_k together, with
p = softmax(a) for s(a); each stack keeps its own S, as if the others' weights were known.

An LL that sent nothing has x_i = 0; an instance with nothing but zeros is decided by majority and
teaches nothing.

State per cube: labelled instances, then for each stack the rows of S and w: a fold over labels in
order. No regret bound of its own: run it in a committee (`learners/fusion/committee.py`) to have
one.
"""

from collections.abc import Mapping
from math import exp, inf, pi

import numpy as np

from learners.arrays.rounds import mean_by_count
from learners.arrays.shares import UNIT, completed, rounded, tally, winner
from learners.arrays.tables import CellTable, Rows, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.errors import LearnerError
from learners.fusion.ballot_log_odds import CLIP, ballot_log_odds, check_clip, label_chances
from learners.fusion.base import Ballot, FusedPredictions, Fusion

_CHUNK_NUMBERS = 1 << 20
"""How many numbers of state are gathered at once for a decision."""

_DENSE_NUMBERS = 1 << 22
"""A dense table holds all cubes from the start; above this many numbers a sparse one is lighter."""


class Stack(Fusion):
    """Bayesian logistic regression on the LLs' log-odds.

    clip             LLs' log-odds are cut off at this
    prior_mean       what an LL's log-odds are worth before any label: below one, because the LLs
                     see the same patient and so repeat each other
    prior_variance   how uncertain that is, and how far the constant may be from 0
    """

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        cubes: int | None = 1,
        clip: float = CLIP,
        prior_mean: float = 0.7,
        prior_variance: float = 0.2,
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        check_clip(clip)
        if not -inf < prior_mean < inf:
            raise LearnerError(f"prior_mean must be a number, not {prior_mean}")
        if not 0.0 < prior_variance < inf:
            raise LearnerError(f"prior_variance must be a number above 0, not {prior_variance}")
        self._clip = clip
        self._stacks = 1 if classes == 2 else classes
        self._inputs = learners + 1
        mean = np.append(np.full(learners, prior_mean), 0.0)
        belief = np.vstack([prior_variance * np.eye(self._inputs), mean])
        start = np.concatenate([[0.0], np.tile(belief.reshape(-1), self._stacks)])
        dense = cubes is not None and cubes * len(start) <= _DENSE_NUMBERS
        self._table = table_for(cubes if dense else None, len(start), np.float64, start.tolist())

    def _beliefs(self, rows: Rows) -> Floats:
        """Return (n, stacks, inputs + 1, inputs): the rows of S, then w."""
        return rows[:, 1:].reshape(len(rows), self._stacks, self._inputs + 1, self._inputs)

    def _read(self, ballot: Ballot) -> Floats:
        """Return x of each stack, (n, stacks, inputs), the constant last."""
        heard = ballot_log_odds(ballot, self._clip)
        x = np.ones((len(ballot), self._stacks, self._inputs))
        x[:, :, :-1] = heard.transpose(0, 2, 1)[:, -self._stacks :]
        return x

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        x = self._read(ballot)
        m, v, worth = self._project(ballot.cells, x)
        fused = m / np.sqrt(1.0 + pi / 8.0 * np.maximum(v, 0.0))
        scores = np.concatenate([-fused, fused], axis=1) if self._stacks == 1 else fused
        silent = _silent(x)
        if silent.any():
            votes = tally(ballot.labels, np.ones_like(ballot.labels), self.classes)
            scores = np.where(silent[:, None], votes, scores)
        # Rounded, so that a batch's make-up, which can move the last bits, does not break ties.
        labels = winner(np.rint(scores * UNIT), ballot.present, self.prefer)
        parts = completed(rounded(np.maximum(worth, 0.0), ballot.present))
        chances = label_chances(scores) if self._stacks == 1 else _softmax(scores)
        return FusedPredictions(labels, parts, ballot.labels, chances * ballot.heard[:, None])

    def _project(self, cells: Ints, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return m and v, (n, stacks), and each LL's weight in the mean over the stacks, (n, M)."""
        distinct, which = np.unique(cells, return_inverse=True)
        if len(distinct) == 1:
            # One matrix product per stack in place of a small one per instance.
            belief = self._beliefs(self._table.rows(distinct))[0]
            turned = x.transpose(1, 0, 2) @ belief.transpose(0, 2, 1)
            image = turned.transpose(1, 0, 2)
            worth = np.broadcast_to(belief[:, -1, :-1].mean(axis=0), (len(x), self.learners))
        else:
            beliefs = self._beliefs(self._table.rows(distinct))
            image = np.empty((len(x), self._stacks, self._inputs + 1))
            step = max(1, _CHUNK_NUMBERS // self._table.width)
            for start in range(0, len(x), step):
                part = slice(start, start + step)
                image[part] = (beliefs[which[part]] @ x[part, :, :, None])[:, :, :, 0]
            worth = beliefs[:, :, -1, :-1].mean(axis=1)[which]
        return image[:, :, -1], (x * image[:, :, :-1]).sum(axis=2), worth

    def _learn(self, ballot: Ballot, _fused: FusedPredictions, truth: Ints, /) -> None:
        x = self._read(ballot)
        telling = np.flatnonzero(~_silent(x))
        if not telling.size:
            return
        x, labels = x[telling], truth[telling][:, None]
        y = labels if self._stacks == 1 else labels == np.arange(self.classes)
        cells, which, counts = np.unique(
            ballot.cells[telling], return_inverse=True, return_counts=True
        )
        rows = self._table.rows(cells)
        rows[:, 0] += counts
        beliefs = self._beliefs(rows).copy()
        # One instance at a time: it costs about the same as a step over fifty cubes at once, and
        # the bits cannot depend on how the stream is cut.
        for cube, inputs, targets in zip(which.tolist(), x, y.astype(np.float64), strict=True):
            _update_all(beliefs[cube], inputs, targets)
        rows[:, 1:] = beliefs.reshape(len(rows), -1)
        self._table.put(cells, rows)

    def tables(self) -> Mapping[str, CellTable]:
        """Return, per cube, labelled instances and each stack's belief."""
        return {"stack": self._table}

    def pooled(self, _name: str, rows: Rows, /) -> Rows:
        """Pool by the mean weighted by labelled instances."""
        return mean_by_count(rows)


def _silent(x: Floats) -> Bools:
    """Tell on which instances all inputs are zero."""
    return ~np.asarray(x[:, :, :-1].any(axis=(1, 2)))


def _update_all(beliefs: Floats, x: Floats, y: Floats) -> None:
    """Take in one instance, x and y of each stack; the beliefs change in place."""
    images = [belief @ row for belief, row in zip(beliefs, x, strict=True)]
    m = [float(image[-1]) for image in images]
    v = [max(float(row @ image[:-1]), 0.0) for row, image in zip(x, images, strict=True)]
    if len(m) == 1:
        p = [_posterior(m[0], v[0], float(y[0]))]
    else:
        p = _joint_posterior(np.array(m), np.array(v), y).tolist()
    for belief, image, *numbers in zip(beliefs, images, v, p, y.tolist(), strict=True):
        _update(belief, image, *numbers)


def _update(belief: Floats, image: Floats, v: float, p: float, y: float) -> None:
    """Change one belief, the rows of S and then w, in place; `image` is its product with x."""
    s = image[:-1]
    k = p * (1.0 - p)
    # S loses k/(1 + k v) s s', and w gains (y - p) s': one outer product for both.
    loss = image * (k / (1.0 + k * v))
    loss[-1] = p - y
    belief -= loss[:, None] * s


def _posterior(m: float, v: float, y: float) -> float:
    """Return p = s(a) at the root of a = m + v (y - s(a)), by guarded Newton steps.

    The root lies between m and m + v (2y - 1). From m, Newton needs three or four steps where v is
    small; for a large v it would oscillate. So a step that leaves the bracket, or is more
    than half as long as the one before, is replaced by halving the bracket.
    """
    low, high = (m, m + v) if y else (m - v, m)
    a, length = m, 2.0 * v
    for _ in range(100):
        p = _logistic(a)
        gap = a - m - v * (y - p)
        if gap > 0.0:
            high = a
        else:
            low = a
        after = a - gap / (1.0 + v * p * (1.0 - p))
        if not low <= after <= high or abs(after - a) > 0.5 * length:
            after = 0.5 * (low + high)
        length = abs(after - a)
        a = after
        if length <= 1e-10 * (1.0 + abs(a)):
            break
    return _logistic(a)


def _joint_posterior(m: Floats, v: Floats, y: Floats) -> Floats:
    """Return p = softmax(a) at the solution of a = m + v (y - softmax(a)) for all stacks together.

    The softmax's curvature is at most one half, so each step with that curvature comes closer
    (D. Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
    Mathematics 44, 1992).
    """
    a = m
    for _ in range(100):
        move = (m - a + v * (y - _softmax(a))) / (1.0 + 0.5 * v)
        a = a + move
        if float(np.abs(move).max()) <= 1e-9:
            break
    return _softmax(a)


def _softmax(scores: Floats) -> Floats:
    """Return the chances, over the last axis, of labels with these scores."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def _logistic(a: float) -> float:
    if a >= 0.0:
        return 1.0 / (1.0 + exp(-a))
    e = exp(a)
    return e / (1.0 + e)
