"""Weights as whole parts of a fixed unit, so that every sum of them is exact.

A fusion rule's weights are real numbers. Here they become integers: a row shares out exactly `UNIT`
parts. Then the mass behind a label, the chance of error of a drawn expert and the sum of those
chances over millions of instances are sums of integers: they do not depend on the order of
addition, and equal masses are exactly equal. 2^63 parts are enough for nine billion instances.
"""

import numpy as np

from learners.arrays.seeds import uniform
from learners.arrays.types import MISSING, Bools, Floats, Ints, Seeds

UNIT = 1_000_000_000
"""How many parts make a weight of one."""


def rounded(weights: Floats, present: Bools) -> Ints:
    """Round weights >= 0 of the present experts to parts; absent ones get none.

    Rows are scaled to sum to UNIT up to rounding. Where no present expert has any weight they all
    get the same; where none is present the row is zero.
    """
    weights = np.where(present, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    idle = total == 0.0
    if idle.any():
        weights = np.where(idle, present, weights)
        total = np.maximum(weights.sum(axis=1, keepdims=True), np.where(idle, 1.0, 0.0))
    return np.asarray(np.rint(weights / total * UNIT), np.int64)


def completed(parts: Ints) -> Ints:
    """Make rows sum to UNIT: the first of the largest shares takes up the rounding error."""
    short = np.where(parts.any(axis=1), UNIT - parts.sum(axis=1), 0)
    result = parts.copy()
    result[np.arange(len(parts)), parts.argmax(axis=1)] += short
    return result


def tally(votes: Ints, parts: Ints, classes: int) -> Ints:
    """Return (n, K): the parts behind each label. Parts may be negative: a vote against."""
    n = len(votes)
    # An absent expert's vote is counted for label 0 with nothing behind it.
    slots = np.maximum(votes, 0) + classes * np.arange(n)[:, None]
    behind = np.where(votes == MISSING, 0, parts)
    # bincount adds in double precision, exact for integers below 2^53.
    mass = np.bincount(slots.reshape(-1), behind.reshape(-1), minlength=n * classes)
    return mass.astype(np.int64).reshape(n, classes)


def winner(scores: Ints | Floats, present: Bools, prefer: int = 0) -> Ints:
    """Return the label with the highest score; MISSING where no expert is present.

    Equal scores go to the label `prefer` if it is among them, else to the smallest index, so that a
    re-run gives the same answer.
    """
    best = scores.argmax(axis=1)
    if prefer:
        best = np.where(scores[:, prefer] == scores.max(axis=1), prefer, best)
    return np.where(present.any(axis=1), best, MISSING)


def draw(parts: Ints, votes: Ints, seeds: Seeds, salt: int) -> Ints:
    """Return the vote of one expert per row, drawn by parts; MISSING where no expert has any."""
    ceilings = np.cumsum(parts, axis=1)
    point = np.floor(uniform(seeds, salt) * UNIT).astype(np.int64)
    expert = np.minimum((ceilings <= point[:, None]).sum(axis=1), parts.shape[1] - 1)
    drawn = votes[np.arange(len(votes)), expert]
    return np.where(parts.any(axis=1), drawn, MISSING)


def proportions(scores: Ints | Floats, heard: Bools) -> Floats:
    """Scale rows of scores to sum to one, or to zero where no expert was `heard`.

    Where some score is negative the row is first raised until none is. A row of zeros gives equal
    shares.

        >>> proportions(np.array([[3, 1], [1, -1], [0, 0], [0, 0]]), np.array([1, 1, 1, 0]) > 0)
        array([[0.75, 0.25], [1.  , 0.  ], [0.5 , 0.5 ], [0.  , 0.  ]])
    """
    raised = scores - np.minimum(scores.min(axis=1, keepdims=True), 0)
    total = raised.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, raised / np.where(total > 0, total, 1), 1.0 / scores.shape[1])
    return np.where(heard[:, None], shares, 0.0)
