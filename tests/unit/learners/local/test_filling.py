"""What stands in for missing values: a fold over labelled rows, whatever the batches."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.local.features import Categorical, FeatureSpace, Real
from learners.local.filling import Filling
from learners.local.scaling import MinMax, ZLogistic
from tests.strategies import cuts, generators

SPACE = FeatureSpace(
    (
        Real("age", MinMax(0, 100)),
        Categorical("site", ("left", "right", "both")),
        Real("dose", ZLogistic(3.0, 1.0)),
    )
)


def rows_of(rng, count, share=0.3):
    rows = np.column_stack(
        [rng.random(count) * 100, rng.integers(0, 3, count), rng.normal(3, 1, count)]
    )
    rows[rng.random(rows.shape) < share] = np.nan
    return rows


@given(generators, st.data())
def test_any_cut_into_batches_gives_the_same_bits(rng, data):
    rows = rows_of(rng, 30)
    whole, parts = Filling(SPACE), Filling(SPACE)
    at = data.draw(cuts(30))
    filled = [parts.learn(rows[i:j]) for i, j in pairwise(at)]
    assert whole.learn(rows).tobytes() == np.concatenate(filled).tobytes()
    states = whole.state(), parts.state()
    assert all(states[0][key].tobytes() == states[1][key].tobytes() for key in states[0])


@given(generators)
def test_what_is_known_stays_and_what_is_filled_is_a_value_of_the_feature(rng):
    rows, filling = rows_of(rng, 40), Filling(SPACE)
    for filled in (filling.learn(rows), filling.look(rows)):
        SPACE.check(filled)
        known = ~np.isnan(rows)
        assert (filled[known] == rows[known]).all()


def test_the_mean_and_the_most_frequent_category_of_what_was_seen():
    filling = Filling(SPACE)
    assert filling.look(np.full((1, 3), np.nan)).tolist() == [[50.0, 0.0, 3.0]]
    filling.learn(np.array([[20.0, 2.0, np.nan], [80.0, 2.0, np.nan], [np.nan, 1.0, 5.0]]))
    assert filling.look(np.full((1, 3), np.nan)).tolist() == [[50.0, 2.0, 4.0]]


def test_complete_rows_leave_no_trace():
    rows = rows_of(np.random.default_rng(1), 20, share=0.0)
    filling = Filling(SPACE)
    assert filling.learn(rows) is rows
    assert filling.state() == {}


def test_partitions_together_know_what_one_would():
    rows = rows_of(np.random.default_rng(2), 60)
    rows[[0, 30], 0] = np.nan
    one, two, whole = Filling(SPACE), Filling(SPACE), Filling(SPACE)
    one.learn(rows[:30])
    two.learn(rows[30:])
    whole.learn(rows)
    pooled = Filling(SPACE)
    pooled.restore(Filling.merged([one.state(), two.state(), {}]))
    gaps = np.full((1, 3), np.nan)
    assert np.allclose(pooled.look(gaps), whole.look(gaps))
    assert Filling.merged([{}, {}]) == {}
