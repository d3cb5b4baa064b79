"""The interval of a track record holds at all times at once, while accuracy changes."""

import numpy as np
import pytest

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
