"""The interval of a track record holds at all times at once, while accuracy changes."""

import numpy as np
import pytest

from learners.theory.promises import share_interval
from learners.theory.running_mean import DELTA, running_mean_interval

N, RUNS = 1000, 200


def covered(p, right):
    """Return, run by run, whether the running mean was inside at all times."""
    n = np.arange(1, N + 1)
    s, mean = np.cumsum(right, axis=1), np.cumsum(p, axis=1) / n
    inside = np.ones(len(right), np.bool_)
    for t in [*range(60), *range(60, N, 7), N - 1]:
        low, high = running_mean_interval(np.full(len(s), n[t]), s[:, t])
        inside &= (low <= mean[:, t]) & (mean[:, t] <= high)
    return inside.mean()


@pytest.mark.parametrize("path", ["rising", "falling", "steady", "swinging"])
def test_it_covers_the_running_mean_at_all_times(path):
    t = np.linspace(0.0, 1.0, N)
    p = {
        "rising": 0.60 + 0.37 * t,
        "falling": 0.97 - 0.37 * t,
        "steady": np.full(N, 0.97),
        "swinging": 0.75 + 0.2 * np.sign(np.sin(40 * t)),
    }[path]
    rng = np.random.default_rng(11)
    right = rng.random((RUNS, N)) < p
    assert covered(np.tile(p, (RUNS, 1)), right) >= 1 - DELTA


def test_it_covers_against_an_adversary_who_looks_at_the_record():
    """The next chance is high after a run of errors, and low where the record is too good."""
    rng = np.random.default_rng(5)
    right, p = np.zeros((RUNS, N), np.bool_), np.zeros((RUNS, N))
    total = np.zeros(RUNS)
    for t in range(N):
        p[:, t] = np.where(total > p[:, :t].sum(axis=1), 0.55, 0.95)
        right[:, t] = rng.random(RUNS) < p[:, t]
        total += right[:, t]
    assert covered(p, right) >= 1 - DELTA


def test_it_narrows_and_never_leaves_the_mean_out():
    cases = np.array([0, 1, 10, 100, 1000, 10_000])
    right = cases * 9 // 10
    low, high = running_mean_interval(cases, right)
    assert (low[0], high[0]) == (0.0, 1.0)
    assert (np.diff(high - low) <= 0).all()
    mean = right[1:] / cases[1:]
    assert ((low[1:] <= mean) & (mean <= high[1:])).all()
    everything = running_mean_interval(cases, cases)
    assert (everything[1] == 1.0).all()


def test_it_holds_at_all_times_for_labels_as_they_stand_though_some_are_corrected():
    """Every label that came is looked up again and again, one a time, each time with chance p."""
    n, p, corrections, runs = 12, 0.9, 3000, 200
    rng = np.random.default_rng(3)
    right = rng.random((runs, n)) < p
    widened, plain = np.ones(runs, np.bool_), np.ones(runs, np.bool_)
    cases = np.full(runs, n)
    for c in range(corrections):
        hits = right.sum(axis=1)
        low, high = share_interval(cases, hits, corrections=c)
        widened &= (low <= p) & (p <= high)
        low, high = share_interval(cases, hits)
        plain &= (low <= p) & (p <= high)
        right[:, c % n] = rng.random(runs) < p
    assert widened.mean() >= 1 - 2 * DELTA
    assert plain.mean() < 0.8, "without a price for corrections it would not hold"


def test_a_correction_widens_it_and_many_do_not_empty_it():
    widths = [
        np.ptp(share_interval(np.array([312]), np.array([303]), corrections=c))
        for c in (0, 1, 10, 1000)
    ]
    assert widths == sorted(widths)
    assert widths[-1] < 2.5 * widths[0]
