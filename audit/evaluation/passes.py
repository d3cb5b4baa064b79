"""Single passes over a file: every patient is decided before its label is known.

The label of patient k is learned once patient k + delay has been decided. The ensemble is the one
that the pipeline runs (`audit.replay`): the same learners, the same join, the same fusion.

Two baselines see all features at once, under the same rule:

    majority   the most frequent label so far
    logistic   logistic regression, refitted to all labels so far, with a ridge penalty of 1 on
               standardised features; means and deviations are those of the labelled rows so far,
               and the mean stands in for what is missing. It is refitted with every label at
               first, then whenever there are 2 % more.
"""

from collections.abc import Callable, Iterator

import numpy as np

from audit.evaluation.cases import Cases
from audit.replay.player import Player
from audit.replay.recorded_stream import Arrivals, RecordedStream
from learners.arrays.types import MISSING, Floats, Ints
from settings.model import Settings

_STEP = 1000
"""Milliseconds between two patients; labels come half a step after."""
_NEWTON = 12
_REFIT = 50
"""It is refitted when the number of labels has grown by one part in this many."""

Progress = Callable[[str, int, int], None]


def ensemble_pass(cases: Cases, settings: Settings, delay: int, progress: Progress) -> Ints:
    """Return what the ensemble predicted for each patient."""
    n = len(cases)
    every = np.arange(n)
    labelled = np.flatnonzero(cases.truth != MISSING)
    stream = RecordedStream(
        [f"p{k}" for k in range(n)],
        {name: Arrivals(every, every * _STEP, rows) for name, rows in cases.rows.items()},
        None,
        labelled,
        (labelled + delay) * _STEP + _STEP // 2,
        cases.truth[labelled],
        np.zeros(n, np.bool_),
    )
    player = Player(stream, settings)
    player.play(progress)
    return player.diagnosed


def majority_pass(cases: Cases, classes: int, delay: int) -> Ints:
    """Return the most frequent label that was known when each patient came."""
    counts, predicted = np.zeros(classes, np.int64), np.zeros(len(cases), np.int64)
    for k, arrived in _arrivals(cases.truth, delay):
        if arrived is not None and cases.truth[arrived] != MISSING:
            counts[cases.truth[arrived]] += 1
        predicted[k] = counts.argmax()
    return predicted


def logistic_pass(cases: Cases, classes: int, delay: int, progress: Progress) -> Ints:
    """Return what a logistic regression over all features predicted for each patient."""
    raw, predicted = cases.columns(), np.zeros(len(cases), np.int64)
    arrived: list[int] = []
    model, fitted = Logistic(raw.shape[1], classes), 0
    for k, label in _arrivals(cases.truth, delay):
        if label is not None and cases.truth[label] != MISSING:
            arrived.append(label)
        if len(arrived) > fitted * (1 + 1 / _REFIT):
            model.fit(raw[arrived], cases.truth[arrived])
            fitted = len(arrived)
        predicted[k] = model.predict(raw[k])
        progress("logistic regression", k + 1, len(cases))
    return predicted


def _arrivals(truth: Ints, delay: int) -> Iterator[tuple[int, int | None]]:
    """Yield each patient, and the one whose label became known just before."""
    for k in range(len(truth)):
        yield k, k - delay - 1 if k > delay else None


class Logistic:
    """Logistic regression by Newton's method, with several labels each against the rest."""

    def __init__(self, width: int, classes: int) -> None:
        self._classes = classes
        self._weights = np.zeros((1 if classes == 2 else classes, width + 1))
        self._mean, self._deviation = np.zeros(width), np.ones(width)
        self._only: int | None = 0

    def fit(self, raw: Floats, truth: Ints) -> None:
        """Fit to all rows given."""
        there = ~np.isnan(raw)
        counts = np.maximum(there.sum(axis=0), 1)
        self._mean = np.where(there, raw, 0.0).sum(axis=0) / counts
        spread = np.where(there, raw - self._mean, 0.0)
        deviation = np.sqrt((spread**2).sum(axis=0) / counts)
        self._deviation = np.where(deviation > 0, deviation, 1.0)
        self._only = int(truth[0]) if (truth == truth[0]).all() else None
        x = self._inputs(raw)
        for head in range(len(self._weights)) if self._only is None else ():
            target = truth == (1 if self._classes == 2 else head)
            self._weights[head] = _newton(x, target.astype(np.float64))

    def _inputs(self, raw: Floats) -> Floats:
        scaled = np.nan_to_num((raw - self._mean) / self._deviation)
        return np.concatenate([scaled, np.ones((len(raw), 1))], axis=1)

    def predict(self, row: Floats) -> int:
        """Return the most probable label."""
        if self._only is not None:
            return self._only
        scores = self._weights @ self._inputs(row[None])[0]
        return int(scores[0] > 0) if self._classes == 2 else int(scores.argmax())


def _newton(x: Floats, y: Floats) -> Floats:
    """Minimise the log loss plus half the squared weights, the constant's hardly at all."""
    weights, ridge = np.zeros(x.shape[1]), np.ones(x.shape[1])
    ridge[-1] = 1e-3
    for _ in range(_NEWTON):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30.0, 30.0)))
        gradient = x.T @ (p - y) + ridge * weights
        curvature = (x * (p * (1.0 - p))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-4:
            break
    return weights
