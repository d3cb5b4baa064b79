"""The interval of few trials comes from a table, that of many is worked out: both are the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.theory.intervals import _KNOWN, _interval, accuracy_interval

counts = st.lists(
    st.integers(0, 3 * _KNOWN).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=20,
)


@given(counts)
def test_looked_up_or_worked_out(pairs):
    trials, successes = np.array(pairs).T
    low, high = accuracy_interval(trials, successes)
    again = _interval(trials, successes, 0.05)
    assert np.allclose([low, high], again, rtol=0, atol=1e-12)


@given(counts)
def test_the_interval_holds_the_mean_and_lies_within_zero_and_one(pairs):
    trials, successes = np.array(pairs).T
    low, high = accuracy_interval(trials, successes)
    mean = successes / np.maximum(trials, 1)
    assert ((low >= 0) & (low <= mean) & (high <= 1)).all()
    assert (high >= np.where(trials, mean, 1.0)).all()


@given(counts)
def test_one_at_a_time_or_together_the_bits_are_the_same_where_few(pairs):
    trials, successes = np.array(pairs).T % _KNOWN
    successes = np.minimum(trials, successes)
    together = accuracy_interval(trials, successes)
    alone = [accuracy_interval(trials[i : i + 1], successes[i : i + 1]) for i in range(len(trials))]
    assert [(a.item(), b.item()) for a, b in alone] == list(zip(*together, strict=True))
