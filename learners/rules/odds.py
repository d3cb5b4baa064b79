"""Log-odds: the common language of learning rules.

Two labels need one number, the log-odds `a` of label 1 against label 0; the two columns are then
`-a` and `a` exactly. With K > 2 labels a rule either has one binary model ("head") per label
against the rest, or one score per label whose softmax is the label's probability.
"""

from math import exp

import numpy as np

from learners.arrays.types import Floats, Ints


def sigmoid(a: float) -> float:
    """Return 1 / (1 + e^-a) without overflow.

    >>> sigmoid(0.0), sigmoid(-1000.0), sigmoid(1000.0)
    (0.5, 0.0, 1.0)
    """
    if a >= 0.0:
        return 1.0 / (1.0 + exp(-a))
    e = exp(a)
    return e / (1.0 + e)


def heads(classes: int) -> int:
    """Return how many binary models K labels need: one each, but a single one for two labels."""
    return 1 if classes == 2 else classes


def targets(truth: Ints, head: int, classes: int) -> list[float]:
    """Return 1.0 where the head's label is true, else 0.0."""
    label = 1 if classes == 2 else head
    return [float(hit) for hit in (truth == label).tolist()]


def from_heads(a: Floats, classes: int) -> Floats:
    """Return (n, K) log-odds from the (n, H) outputs of the heads."""
    return np.concatenate([-a, a], axis=1) if classes == 2 else a


def from_scores(scores: Floats) -> Floats:
    """Return the log-odds of each label where softmax(scores) are the probabilities.

    odds_k = s_k - ln(sum of e^s_j over j != k). For the top label the sum is taken without it: the
    difference of the full sum and its own term would cancel.

        >>> from_scores(np.array([[1.0, 3.0]])).tolist()
        [[-2.0, 2.0]]
    """
    n, classes = scores.shape
    if classes == 2:
        return from_heads(scores[:, 1:] - scores[:, :1], 2)
    rows = np.arange(n)
    top = scores.argmax(axis=1)
    remaining = scores.copy()
    remaining[rows, top] = -np.inf
    log_rest = _log_sum_exp(remaining)
    total = np.logaddexp(log_rest, scores[rows, top])
    share = np.exp(scores - total[:, None])
    share[rows, top] = 0.0
    odds: Floats = scores - total[:, None] - np.log1p(-share)
    odds[rows, top] = scores[rows, top] - log_rest
    return odds


def parts_of_heads(parts: Floats, classes: int) -> Floats:
    """Return (n, d, K) parts of log-odds from the (n, d, H) parts of the heads' outputs."""
    return np.concatenate([-parts, parts], axis=2) if classes == 2 else parts


def parts_of_scores(parts: Floats) -> Floats:
    """Return the parts of log-odds from the (n, d, K) parts of scores that go into a softmax.

    With two labels a score's part less the other's. With more, less the mean of all labels: what a
    feature adds to all scores alike changes no chance. The log of the sum over the other labels,
    which is then left out, belongs to no feature.
    """
    if parts.shape[2] == 2:
        return parts_of_heads(parts[:, :, 1:] - parts[:, :, :1], 2)
    return np.asarray(parts - parts.mean(axis=2, keepdims=True))


def _log_sum_exp(scores: Floats) -> Floats:
    peak = scores.max(axis=1)
    total = np.zeros(len(scores))
    for column in scores.T:  # label by label: the order of the sum must not depend on the batch
        total += np.exp(column - peak)
    return np.asarray(peak + np.log(total))


def by_row(rows: Floats, matrix: Floats) -> Floats:
    """Return rows @ matrix, one vector-matrix product per row.

    One product of the whole batch would be faster, but BLAS picks its order of summation by the
    shape, so a row's result would depend on how many others came with it.
    """
    return np.asarray(np.matmul(np.ascontiguousarray(rows)[:, None, :], matrix)[:, 0, :])


def dot_rows(left: Floats, right: Floats) -> Floats:
    """Return the (n,) dot products of the rows of two matrices, each summed on its own."""
    return np.asarray(np.vecdot(left, right))
