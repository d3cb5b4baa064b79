"""A baseline, the least to expect: always answering the most frequent label.

Both answer the same patients, so they are compared on those where they differ: where the
predictor gave another label than the most frequent one, it was either right (and the baseline
wrong) or wrong about a patient of the most frequent label (and the baseline right). A predictor
that is no better than the baseline wins at most half of these.
"""

from dataclasses import dataclass

import numpy as np

from learners.arrays.types import Ints


@dataclass(frozen=True, slots=True)
class Baseline:
    """The most frequent label, and how it compares.

    label    the number of the most frequent label; of several the first
    error    the error rate of always answering it
    won      patients that the predictor got right and the baseline wrong
    lost     patients that the baseline got right and the predictor wrong
    """

    label: int
    error: float
    won: int
    lost: int


def baseline(counts: Ints) -> Baseline | None:
    """Compare a (K, K) confusion matrix, truth by prediction, with the most frequent label.

    >>> baseline(np.array([[80, 10], [2, 8]]))
    Baseline(label=0, error=0.1, won=8, lost=10)
    >>> baseline(np.zeros((2, 2), np.int64))
    """
    totals = counts.sum(axis=1)
    if not totals.sum():
        return None
    label = int(totals.argmax())
    right = int(np.trace(counts)) - int(counts[label, label])
    lost = int(totals[label]) - int(counts[label, label])
    error = float((totals.sum() - totals[label]) / totals.sum())
    return Baseline(label, error, right, lost)
