"""From support to chance: one rising curve for all labels, drawn through what the bins counted.

Each bin's share of patients who had the label, leaning on the support as much as the counts suggest
(`prior_strength.py`; histogram binning: B. Zadrozny and C. Elkan, 2001), is noisy where few
patients were counted. Used as it is, more support could mean less chance: the likeliest label would
not be the one decided on, and the least certain cases would be ranked by noise. So the shares are
made to rise (pool adjacent violators: Zadrozny and Elkan, 2002), labels are counted together, and
between the middles of bins the curve is drawn through the log-odds, not in steps. A patient's
labels then have their chances in the order of their supports; with two labels the curve mirrors
itself.

It is a function of integer counts alone, so order does not matter and an audit gets the same curve.
"""

from typing import NamedTuple

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.assessment.bins import CENTRES
from learners.assessment.prior_strength import LEANS, leaning

_EVEN = 0.01
"""Imagined patients spread evenly over the labels, for each one that follows the support."""

_SLOPE = 0.01
"""The share of the support itself in a chance, so that more support always means more chance."""

_MIDDLES: Floats = 1.0 / (1.0 + np.exp(-CENTRES))
"""The support in the middle of each bin."""


def calibrated(odds: Floats, shift: Floats) -> Floats:
    """Return (n, K) chances for the log-odds of supports, from the curve that `shift_of` returned.

    >>> cases, hits = np.zeros((2, 32), np.int64), np.zeros((2, 32), np.int64)
    >>> cases[[0, 1], [11, 20]] = 300    # support of 10 and 90 percent
    >>> hits[[0, 1], [11, 20]] = 60, 240
    >>> calibrated(np.log([[1 / 9, 9.0]]), shift_of(cases, hits)).round(2).tolist()
    [[0.19, 0.81]]
    """
    odds = np.clip(odds, CENTRES[0], CENTRES[-1])
    moved = odds + np.interp(odds, CENTRES, shift)
    share = (1.0 - _SLOPE) / (1.0 + np.exp(-moved)) + _SLOPE / (1.0 + np.exp(-odds))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def shift_of(cases: Ints, hits: Ints) -> Floats:
    """Return how far the curve moves log-odds in the middle of each bin, from (K, bins) counts."""
    curve = _curve(cases, hits)
    return np.asarray(np.log(curve / (1.0 - curve)) - CENTRES)


def _curve(cases: Ints, hits: Ints) -> Floats:
    """Return the chance in the middle of each bin; it never falls."""
    classes = len(cases)
    n, had = cases.sum(axis=0), hits.sum(axis=0)
    # With two labels each patient is counted twice: for one label, and mirrored for the other.
    weights = leaning(n, had, times=2 if classes == 2 else 1)[:, None]
    leans = LEANS[:, None]
    expected = (_MIDDLES + _EVEN / classes) / (1.0 + _EVEN)
    shares = (weights * (had + leans * expected) / (n + leans)).sum(axis=0)
    return _rising(shares, n + (weights * leans).sum(axis=0))


class _Pool(NamedTuple):
    """Neighbouring bins with one share between them."""

    share: float
    weight: float
    bins: int


def _rising(shares: Floats, weights: Floats) -> Floats:
    """Return the rising sequence that is nearest to the shares: pool adjacent violators."""
    pools: list[_Pool] = []
    for share, weight in zip(shares.tolist(), weights.tolist(), strict=True):
        pool = _Pool(share, weight, 1)
        while pools and pools[-1].share >= pool.share:
            below = pools.pop()
            total = below.weight + pool.weight
            mean = (below.share * below.weight + pool.share * pool.weight) / total
            pool = _Pool(mean, total, below.bins + pool.bins)
        pools.append(pool)
    return np.repeat([pool.share for pool in pools], [pool.bins for pool in pools])
