"""What is known of features: what stands in for missing values, and scales learned online."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.local.features import Categorical, FeatureSpace, Real
from learners.local.fill_and_scale import Moments
from learners.local.scaling import MinMax, Online, ZLogistic
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
    whole, parts = Moments(SPACE), Moments(SPACE)
    at = data.draw(cuts(30))
    filled = [parts.learn(rows[i:j]) for i, j in pairwise(at)]
    assert whole.learn(rows).tobytes() == np.concatenate(filled).tobytes()
    states = whole.state(), parts.state()
    assert all(states[0][key].tobytes() == states[1][key].tobytes() for key in states[0])


@given(generators)
def test_what_is_known_stays_and_what_is_filled_is_a_value_of_the_feature(rng):
    rows, filling = rows_of(rng, 40), Moments(SPACE)
    for filled in (filling.learn(rows), filling.look(rows)):
        SPACE.check(filled)
        present = ~np.isnan(rows)
        assert (filled[present] == rows[present]).all()


def test_the_mean_and_the_most_frequent_category_of_what_was_seen():
    filling = Moments(SPACE)
    assert filling.look(np.full((1, 3), np.nan)).tolist() == [[50.0, 0.0, 3.0]]
    filling.learn(np.array([[20.0, 2.0, np.nan], [80.0, 2.0, np.nan], [np.nan, 1.0, 5.0]]))
    assert filling.look(np.full((1, 3), np.nan)).tolist() == [[50.0, 2.0, 4.0]]


def test_complete_rows_leave_no_trace():
    rows = rows_of(np.random.default_rng(1), 20, share=0.0)
    filling = Moments(SPACE)
    assert filling.learn(rows) is rows
    assert filling.state() == {}


def test_partitions_together_know_what_one_would():
    rows = rows_of(np.random.default_rng(2), 60)
    rows[[0, 30], 0] = np.nan
    first, second, whole = Moments(SPACE), Moments(SPACE), Moments(SPACE)
    first.learn(rows[:30])
    second.learn(rows[30:])
    whole.learn(rows)
    pooled = Moments(SPACE)
    pooled.restore(Moments.merged([first.state(), second.state(), {}]))
    gaps = np.full((1, 3), np.nan)
    assert np.allclose(pooled.look(gaps), whole.look(gaps))
    assert Moments.merged([{}, {}]) == {}


def online_space():
    """A space whose scales nothing else moves."""
    features = (Real("age", Online()), Categorical("site", ("left", "right", "both")))
    return FeatureSpace((*features, Real("dose", Online())))


@given(generators, st.data())
def test_online_scales_are_the_same_bits_however_batches_are_cut(rng, data):
    rows = rows_of(rng, 30)
    whole, parts = Moments(online_space()), Moments(online_space())
    at = data.draw(cuts(30))
    filled = [parts.learn(rows[i:j]) for i, j in pairwise(at)]
    assert whole.learn(rows).tobytes() == np.concatenate(filled).tobytes()
    states = whole.state(), parts.state()
    assert all(states[0][key].tobytes() == states[1][key].tobytes() for key in states[0])
    assert whole.space.unit(rows).tobytes() == parts.space.unit(rows).tobytes()
    again = Moments(online_space())
    again.restore(whole.state())
    assert again.space.unit(rows).tobytes() == whole.space.unit(rows).tobytes()


@given(generators)
def test_an_online_scale_is_that_of_the_values_seen(rng):
    rows = rows_of(rng, 200, share=0.2) * [1e6, 1, 1e-6] + [1e9, 0, 0]
    moments = Moments(online_space())
    moments.learn(rows)
    fitted = [ZLogistic.fit(rows[~np.isnan(rows[:, j]), j]) for j in (0, 2)]
    expected = ZLogistic.apply(fitted, rows[:, [0, 2]])
    np.testing.assert_allclose(moments.space.unit(rows)[:, [0, 2]], expected, atol=1e-6)
    gaps = moments.look(np.full((1, 3), np.nan))[0]
    np.testing.assert_allclose(gaps[[0, 2]], np.nanmean(rows, axis=0)[[0, 2]], rtol=1e-9)


def test_before_anything_is_known_every_value_has_a_place():
    moments = Moments(online_space())
    unit = moments.space.unit(np.array([[1e300, 1.0, -3.0], [np.nan, 0.0, 0.0]]))
    assert unit[0].tolist() == [1.0, 0.5, float(1 / (1 + np.exp(3)))]
    assert np.isnan(unit[1, 0])
    assert unit[1, 2] == 0.5
    assert moments.begun, "from the first row on, complete or not"


def test_online_scales_of_partitions_are_those_of_the_whole():
    rows = rows_of(np.random.default_rng(3), 80, share=0.2)
    parts = [Moments(online_space()) for _ in range(3)]
    for part, piece in zip(parts, np.array_split(rows, [10, 50]), strict=True):
        part.learn(piece)
    whole, pooled = Moments(online_space()), Moments(online_space())
    whole.learn(rows)
    pooled.restore(Moments.merged([part.state() for part in parts]))
    np.testing.assert_allclose(pooled.space.unit(rows), whole.space.unit(rows))
