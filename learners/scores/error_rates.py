"""How often the ensemble learner (EL) and the local learners (LLs) are wrong.

    paper   here
    PER     errors among all labelled instances
    FPR     errors among those whose true label is not the positive one ("for benign cases")
    FNR     errors among those whose true label is the positive one ("for malignant cases")
    IR      improvement ratio, (PM(B) - PM(A)) / PM(B) for a loss metric PM

With more than two labels FPR thus counts every error on a negative instance, including the
confusion of one negative label with another; the confusion matrix tells them apart.

The state is a matrix of integers, true label by predicted label; matrices add up exactly. Leading
axes are free: scopes (the EL, then each LL), or independent runs of an experiment. A learner that
sent nothing (MISSING) is neither right nor wrong; an instance without a label is not counted. A
rate over no instances is nan.
"""

from dataclasses import dataclass

import numpy as np

from learners.arrays.types import MISSING, Floats, Ints


def confusion(truth: Ints, predicted: Ints, classes: int) -> Ints:
    """Count a batch: (…, n) labels against (…, n) predictions give (…, K, K), truth by prediction.

    The two broadcast, so one row of labels serves the predictions of many learners.

        >>> confusion(np.array([0, 1, 1]), np.array([[0, 1, 0], [0, 0, MISSING]]), 2).tolist()
        [[[1, 0], [1, 1]], [[1, 0], [1, 0]]]
    """
    truth, predicted = np.broadcast_arrays(truth, predicted)
    *leading, n = truth.shape
    matrices = int(np.prod(leading))
    slots = (truth * classes + predicted).reshape(matrices, n)
    slots = slots + classes**2 * np.arange(matrices)[:, None]
    labelled = ((truth != MISSING) & (predicted != MISSING)).reshape(matrices, n)
    counts = np.bincount(slots[labelled], minlength=matrices * classes**2)
    return counts.reshape(*leading, classes, classes)


@dataclass(frozen=True, slots=True)
class Rates:
    """Error rates, each of the shape of the leading axes; nan where there is nothing to divide."""

    per: Floats
    fpr: Floats
    fnr: Floats


def rates(counts: Ints, positive: int) -> Rates:
    """Return the error rates of (…, K, K) confusion matrices.

    >>> error = rates(np.array([[95, 5], [1, 39]]), positive=1)
    >>> round(float(error.per), 4), float(error.fpr), float(error.fnr)
    (0.0429, 0.05, 0.025)
    """
    totals = counts.sum(axis=-1)
    wrong = totals - np.diagonal(counts, axis1=-2, axis2=-1)
    all_seen, all_wrong = totals.sum(axis=-1), wrong.sum(axis=-1)
    ill_seen, ill_wrong = totals[..., positive], wrong[..., positive]
    return Rates(
        per=_ratio(all_wrong, all_seen),
        fpr=_ratio(all_wrong - ill_wrong, all_seen - ill_seen),
        fnr=_ratio(ill_wrong, ill_seen),
    )


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The LLs as benchmarks, known only afterwards.

    best, worst   the rates of the LL with the lowest and the highest PER
    average       the mean of each rate over the LLs that have it
    """

    best: Rates
    average: Rates
    worst: Rates


def hindsight(counts: Ints, positive: int) -> Hindsight:
    """Return best, average and worst of M local learners, (…, M, K, K) confusion matrices.

    LLs that were never heard on a labelled instance are left out, unless there are no others.
    """
    learners = rates(counts, positive)
    unheard = np.isnan(learners.per)
    best = np.where(unheard, np.inf, learners.per).argmin(axis=-1)
    worst = np.where(unheard, -np.inf, learners.per).argmax(axis=-1)
    return Hindsight(_pick(learners, best), _average(learners), _pick(learners, worst))


def _pick(learners: Rates, learner: Ints) -> Rates:
    at = np.expand_dims(learner, -1)
    every = learners.per, learners.fpr, learners.fnr
    return Rates(*(np.take_along_axis(rate, at, axis=-1)[..., 0] for rate in every))


def _average(learners: Rates) -> Rates:
    def mean(values: Floats) -> Floats:
        defined = ~np.isnan(values)
        return _ratio(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1))

    return Rates(mean(learners.per), mean(learners.fpr), mean(learners.fnr))


def _ratio(part: Ints | Floats, whole: Ints | Floats) -> Floats:
    """Return part / whole, nan where whole is 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    empty = whole == 0
    return np.asarray(np.where(empty, np.nan, part / np.where(empty, 1.0, whole)))
