"""An interval for the chance of being right, that holds at all times and while learners change.

Labelled diagnoses of one kind are right or wrong, X_1, X_2, …, with chances p_1, p_2, … that may
change as learners learn and patients drift: p_i is the chance that the i-th is right, given all
that was known before its label came. After n of them, S were right; the interval is about the
running mean p = (p_1 + … + p_n) / n.

For each number l, E[exp(l X_i)] = 1 - p_i + p_i e^l given the past, so

    exp(l S - sum_i ln(1 - p_i + p_i e^l))

is a martingale that starts at 1, and so is its mean over any fixed distribution of l. By Ville's
inequality the mean stays below 1/delta at all times at once with probability 1 - delta. And as
ln(1 - p + p e^l) is concave in p, the sum is at most n times its value at the running mean. Hence,
with probability 1 - delta, at all times

    mean over l of  exp(l S - n ln(1 - p + p e^l))  <  1/delta

Each term is convex in p, so the p that obey this are an interval, found by bisection. It needs no
independence and no order of patients, and n and S are all its state. With p_i that never change it
is `learners.theory.intervals` with another mixture. References: J. Ville (1939); H. Robbins (1970);
S. Howard and others, "Time-uniform, nonparametric, nonasymptotic confidence sequences" (2021).

    >>> low, high = running_mean_interval(np.array([312]), np.array([303]))
    >>> (low.item(), high.item())
    (0.9265794020432694, 0.9931265024038461)
"""

import numpy as np

from learners.arrays.types import Floats, Ints

DELTA = 0.05

_STEPS = 11
"""Bisections: the ends lie outside by at most half a thousandth."""

# The numbers l, of both signs: a hundred thousand diagnoses call for the smallest, a handful for
# the largest. Neighbours lie so close that the mixture loses nothing between them.
_SIZES = np.geomspace(0.004, 8.0, 20)
_L: Floats = np.concatenate([-_SIZES[::-1], _SIZES])
_GAIN: Floats = np.expm1(_L)
_LOG_SHARE = -np.log(len(_L))


def running_mean_interval(cases: Ints, right: Ints, delta: float = DELTA) -> tuple[Floats, Floats]:
    """Return the lower and upper ends; [0, 1] where there are no cases."""
    n, s = np.asarray(cases, np.float64), np.asarray(right, np.float64)
    mean = s / np.maximum(n, 1.0)
    # Outside on one side, inside (at the mean) on the other: the last outside ones are the ends.
    outer, inner = np.stack([np.zeros_like(mean), np.ones_like(mean)]), np.stack([mean, mean])
    won, played, most = s[:, None] * _L, n[:, None], -np.log(delta)
    for _ in range(_STEPS):
        middle = (outer + inner) / 2.0
        inside = _log_mixture(won, played, middle) < most
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
    return outer[0], outer[1]


def _log_mixture(won: Floats, played: Floats, p: Floats) -> Floats:
    """Return ln of the mean over l, for (2, cells) values of p; `won` is l S, and `played` n."""
    exponents = won - played * np.log1p(p[:, :, None] * _GAIN)
    top = exponents.max(axis=2)
    mixed = np.exp(exponents - top[:, :, None]).sum(axis=2)
    return np.asarray(top + np.log(mixed) + _LOG_SHARE)
