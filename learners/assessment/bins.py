"""The bins by which supports and chances are counted.

A support is what a fusion rule finds in favour of a label, between 0 and 1
(`FusedPredictions.support`). It is rounded to whole millionths first: a diagnosis carries it that
way, so an audit finds the same bin. Bins of support are equally wide in log-odds, since certainty
grows there; votes, which take only a few values, use the outermost bins too. Bins of chance follow
the way people read a chance.
"""

import numpy as np

from learners.arrays.types import Floats, Ints

MILLION = 1_000_000

_EDGES: Floats = np.arange(-7.5, 7.75, 0.5)
SUPPORT_BINS = len(_EDGES) + 1

CENTRES: Floats = np.append(_EDGES, _EDGES[-1] + 0.5) - 0.25
"""The middle of each bin, in log-odds; the outermost are taken to be as wide as the others."""

_CHANCES: Floats = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])
CHANCE_BINS = len(_CHANCES) + 1

_FAR = float(np.log(MILLION))
"""The largest log-odds of a support: 0 and 1 count as if they were a millionth away from there."""


def millionths(support: Floats) -> Ints:
    """Round supports to whole millionths."""
    return np.asarray(np.rint(support * MILLION), np.int64)


def support_odds(parts: Ints) -> Floats:
    """Return the log-odds of supports in millionths, finite."""
    clipped = np.clip(parts, 1, MILLION - 1) / MILLION
    odds = np.clip(np.log(clipped / (1.0 - clipped)), -_FAR, _FAR)
    return np.where(parts <= 0, -_FAR, np.where(parts >= MILLION, _FAR, odds))


def support_bins(parts: Ints) -> tuple[Ints, Floats]:
    """Return the bin of each support in millionths, and how far up it lies within it, 0 to 1.

    >>> bins, along = support_bins(np.array([0, 500_000, 1_000_000]))
    >>> bins.tolist(), along.tolist()
    ([0, 16, 31], [0.0, 0.0, 1.0])
    """
    return odds_bins(support_odds(parts))


def odds_bins(odds: Floats) -> tuple[Ints, Floats]:
    """Return the same from the log-odds of supports."""
    bins = np.searchsorted(_EDGES, odds, side="right")
    ends = np.concatenate([[-_FAR], _EDGES, [_FAR]])
    along = (odds - ends[bins]) / (ends[bins + 1] - ends[bins])
    return bins, np.clip(along, 0.0, 1.0)


def chance_bins(chance: Floats) -> Ints:
    """Return the bin of each chance.

    >>> chance_bins(np.array([0.0, 0.5, 0.96, 1.0])).tolist()
    [0, 5, 10, 13]
    """
    return np.searchsorted(_CHANCES, chance, side="right")
