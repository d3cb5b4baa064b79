"""The largest of a few scores per instance, with ties broken by the instance's own seed.

Scores come as (F, n): one row per candidate. For the few rows of a local learner's rules a loop
over them beats numpy's reductions along that axis.
"""

import numpy as np

from learners.arrays.types import Bools, Floats, Ints, Seeds


def largest(scores: Floats) -> Floats:
    """Return the maximum over the first axis."""
    best: Floats = scores[0]
    for row in scores[1:]:
        best = np.maximum(best, row)
    return best


def argmax(scores: Floats, at: Ints, seeds: Seeds, preferred: int | None) -> Ints:
    """Return the best candidate for the instances whose columns of `scores` are `at`.

    Of tied candidates the `preferred` one wins if it is among them, else the seed decides.
    """
    best = scores[0]
    winners = np.zeros(len(best), np.int64)
    tied = np.zeros(len(best), np.bool_)
    for f in range(1, len(scores)):
        better = scores[f] > best
        tied = (tied & ~better) | (scores[f] == best)
        winners = np.maximum(winners, better * f)
        best = np.maximum(best, scores[f])
    winners = winners.take(at)
    if tied.any():
        rows = np.flatnonzero(tied.take(at))
        top = scores.take(at[rows], axis=1) == best.take(at[rows])
        winners[rows] = _break(top, seeds.take(rows), preferred)
    return winners


def _break(top: Bools, seeds: Seeds, preferred: int | None) -> Ints:
    """Choose one of the candidates marked in each column of `top` (F, n)."""
    # A seed is a hash already: its remainder is the rank of the winner among the tied ones.
    rank = (seeds % top.sum(axis=0).astype(np.uint64)).astype(np.int64)
    winners = np.zeros(len(seeds), np.int64)
    for f, marked in enumerate(top):
        winners += f * (marked & (rank == 0))
        rank -= marked
    return winners if preferred is None else np.where(top[preferred], preferred, winners)
