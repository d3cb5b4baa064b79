"""Figures about chances: how well they are calibrated, and what referring the least sure gains."""

import numpy as np

from learners.arrays.types import Floats, Ints

BINS = 10
SMALLEST = 1e-6
"""Smaller chances of what happened count as this, so that one of zero is not an endless loss."""


def calibration_error(chances: Floats, truth: Ints) -> float:
    """Return the expected calibration error of the likeliest label.

    The diagnoses are cut by the chance of their label into ten bins of about equal size; the error
    is the mean distance between a bin's mean chance and its share of right diagnoses.

    >>> calibration_error(np.array([[0.2, 0.8]] * 10), np.array([1] * 8 + [0] * 2))
    0.0
    """
    top = chances.max(axis=1)
    right = chances.argmax(axis=1) == truth
    # By quantiles, so that equal chances fall into one bin.
    bins = np.searchsorted(np.quantile(top, np.arange(1, BINS) / BINS), top, side="right")
    gaps = np.bincount(bins, top, BINS) - np.bincount(bins, right, BINS)
    error = float(np.abs(gaps).sum())
    return round(error / len(top), 12)


def log_loss(chances: Floats, truth: Ints) -> float:
    """Return the mean of -ln of the chance that the true label was given.

    >>> round(log_loss(np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0, 1])), 3)
    0.458
    """
    assigned = chances[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(assigned, SMALLEST)).mean())


def brier_score(chances: Floats, truth: Ints) -> float:
    """Return the mean squared distance of the chances from the truth, summed over the labels.

    >>> round(brier_score(np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0, 1])), 3)
    0.29
    """
    apart = chances - np.eye(chances.shape[1])[truth]
    return float(np.square(apart).sum(axis=1).mean())


def calibration_floor(chances: Floats, seed: int = 0, draws: int = 200) -> float:
    """Return the calibration error that the same chances have on average if they are true.

    With few patients in a bin it is far from zero, wherever the chances come from.
    """
    rng = np.random.default_rng(seed)
    sums = chances.cumsum(axis=1)[:, :-1]
    errors = [
        calibration_error(chances, (rng.random((len(chances), 1)) >= sums).sum(axis=1))
        for _ in range(draws)
    ]
    return float(np.mean(errors))


def calibration_gap_se(
    ours: Floats, theirs: Floats, truth: Ints, seed: int = 0, draws: int = 400
) -> float:
    """Return the standard error of the difference of two calibration errors.

    By a bootstrap over the patients, each drawn with both chances.
    """
    rng = np.random.default_rng(seed)
    n = len(truth)
    gaps = []
    for _ in range(draws):
        drawn = rng.integers(0, n, n)
        our_error, their_error = (
            calibration_error(chances[drawn], truth[drawn]) for chances in (ours, theirs)
        )
        gaps.append(our_error - their_error)
    return float(np.std(gaps, ddof=1))


def error_rate(chances: Floats, truth: Ints) -> float:
    """Return the share of patients whose likeliest label is wrong, in percent."""
    return 100.0 * float((chances.argmax(axis=1) != truth).mean())


def referred(chances: Floats, truth: Ints, share: float = 0.1) -> float:
    """Return the error rate in percent once the least sure patients are referred."""
    order = np.argsort(-chances.max(axis=1), kind="stable")
    sure = order[: len(order) - round(share * len(order))]
    return error_rate(chances[sure], truth[sure])
