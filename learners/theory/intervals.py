"""An interval for the accuracy of a rule in a cube, that holds at all times at once.

A bandit looks at its counts after every label and acts on them, so an interval made for one fixed
sample size would be too narrow. Robbins' mixture gives one that holds for all sample sizes
together: for trials N and successes S, the accuracies p for which

    p^S (1-p)^(N-S)  >  delta * B(S+1, N-S+1)

where B is the beta function (uniform mixture). By Ville's inequality the true accuracy stays inside
with probability at least 1 - delta, for as long as the learner runs. References: H. Robbins,
"Statistical methods related to the law of the iterated logarithm" (1970); S. Howard et al.,
"Time-uniform, nonparametric, nonasymptotic confidence sequences" (2021).

The paper's own promise (Corollary 1) is about the distance from the best rule and is much wider; it
is `learners.theory.bounds.confidence_epsilon`. This interval is about the accuracy of one rule,
averaged over the cube's own instances.

    >>> low, high = accuracy_interval(np.array([1000]), np.array([950]))
    >>> (low.round(3).item(), high.round(3).item())
    (0.92, 0.972)
"""

from functools import cache

import numpy as np

from learners.arrays.types import Floats, Ints

DELTA = 0.05
_STEPS = 7
_MARGIN = 1e-15
_KNOWN = 256
"""Intervals of fewer trials are worked out once: most cubes have few, most batches are small."""


def accuracy_interval(trials: Ints, successes: Ints, delta: float = DELTA) -> tuple[Floats, Floats]:
    """Return the lower and upper ends; [0, 1] where there are no trials."""
    low, high = _few(delta)
    many = trials >= _KNOWN
    if not many.any():
        places = trials * (trials + 1) // 2 + successes
        return low.take(places), high.take(places)
    ends = np.empty(len(trials)), np.empty(len(trials))
    ends[0][many], ends[1][many] = _interval(trials[many], successes[many], delta)
    few = ~many
    ends[0][few], ends[1][few] = accuracy_interval(trials[few], successes[few], delta)
    return ends


@cache
def _few(delta: float) -> tuple[Floats, Floats]:
    """Return the ends for all counts below `_KNOWN`: row after row, for S from 0 to N."""
    trials = np.repeat(np.arange(_KNOWN), np.arange(1, _KNOWN + 1))
    successes = np.arange(len(trials)) - trials * (trials + 1) // 2
    return _interval(trials, successes, delta)


def _interval(trials: Ints, successes: Ints, delta: float) -> tuple[Floats, Floats]:
    n = np.asarray(trials, np.float64)
    s = np.asarray(successes, np.float64)
    level = np.log(delta) + log_factorial(s) + log_factorial(n - s) - log_factorial(n + 1)
    # The upper end is one minus the lower end of the failures: both are found in one go.
    ends = _lower(
        np.concatenate([n, n]), np.concatenate([s, n - s]), np.concatenate([level, level])
    )
    return ends[: len(n)], 1.0 - ends[len(n) :]


def _lower(n: Floats, s: Floats, level: Floats) -> Floats:
    """Find the p below s/n where the log-likelihood falls to the level, by Newton's method.

    The log-likelihood is concave and rises up to s/n, so the steps climb to the root from any start
    to its left without overshooting. Two starts that are surely left of it: Pinsker's inequality
    bounds its distance from s/n, and `s ln p = level` bounds it away from zero.
    """
    trials, hits = np.maximum(n, 1.0), np.maximum(s, 1.0)
    mean = s / trials
    excess = _log_likelihood(mean, n, s) - level
    p = np.maximum(mean - np.sqrt(excess / (2.0 * trials)), np.exp(level / hits))
    for _ in range(_STEPS):
        p = np.clip(p, _MARGIN, 1.0 - _MARGIN)
        slope = s / p - (n - s) / (1.0 - p)
        p = np.where(slope > 0, p - (_log_likelihood(p, n, s) - level) / np.maximum(slope, 1.0), p)
    return np.where(s > 0, np.minimum(p, mean), 0.0)


def _log_likelihood(p: Floats, n: Floats, s: Floats) -> Floats:
    p = np.clip(p, _MARGIN, 1.0 - _MARGIN)
    return np.asarray(s * np.log(p) + (n - s) * np.log1p(-p))


def log_factorial(k: Floats) -> Floats:
    """`ln k!` by Stirling's series, started at k + 9 so that its error is below 1e-9."""
    x = k + 9.0
    series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x**3) + 1.0 / (1260.0 * x**5)
    log_gamma = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2.0 * np.pi) + series
    shift = (k + 1) * (k + 2) * (k + 3) * (k + 4) * (k + 5) * (k + 6) * (k + 7) * (k + 8)
    return np.asarray(log_gamma - np.log(shift))
