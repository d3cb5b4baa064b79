"""What every rule that learns must hold to: one contract for all kinds."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.errors import LearnerError
from tests.strategies import cuts, generators
from tests.unit.learners.rules.samples import (
    CATEGORIES,
    LEARNING,
    MIXED,
    REALS,
    learning_rule,
    same,
    stream,
)

ROWS = 90
every_rule = pytest.mark.parametrize("table", LEARNING.values(), ids=LEARNING.keys())
shapes = st.tuples(st.sampled_from([REALS, MIXED, CATEGORIES]), st.sampled_from([2, 3]))


@every_rule
@settings(max_examples=15)
@given(generators, cuts(ROWS), shapes)
def test_learning_does_not_depend_on_the_cut_into_batches(table, generator, at, shape):
    rows, truth = stream(generator, ROWS, *shape)
    whole, cut, single = (learning_rule(table, *shape) for _ in range(3))
    whole.learn(rows, truth)
    for start, stop in itertools.pairwise(at):
        cut.learn(rows[start:stop], truth[start:stop])
    for t in range(ROWS):
        single.learn(rows[t : t + 1], truth[t : t + 1])
    columnwise = learning_rule(table, *shape)
    columnwise.learn(np.asfortranarray(rows), truth)
    assert same(whole.state(), cut.state())
    assert same(whole.state(), single.state())
    assert same(whole.state(), columnwise.state()), "nor on the rows' layout in memory"


@every_rule
@settings(max_examples=15)
@given(generators, st.integers(0, ROWS), shapes)
def test_restoring_and_going_on_equals_the_uninterrupted_run(table, generator, crash, shape):
    rows, truth = stream(generator, ROWS, *shape)
    steady, before, after = (learning_rule(table, *shape) for _ in range(3))
    steady.learn(rows, truth)
    before.learn(rows[:crash], truth[:crash])
    saved = before.state()
    copy = {key: value.copy() for key, value in saved.items()}
    before.learn(rows[crash:], truth[crash:])
    assert same(saved, copy), "learning on must not change a state that was handed out"
    after.restore(saved)
    assert after.log_odds(rows).tobytes() == _restored(table, shape, copy).log_odds(rows).tobytes()
    after.learn(rows[crash:], truth[crash:])
    assert same(saved, copy), "nor may the rule it was restored into"
    assert same(after.state(), steady.state())
    assert after.log_odds(rows).tobytes() == steady.log_odds(rows).tobytes()


def _restored(table, shape, state):
    rule = learning_rule(table, *shape)
    rule.restore(state)
    return rule


@every_rule
@settings(max_examples=15)
@given(generators, cuts(ROWS), shapes)
def test_a_prediction_does_not_depend_on_the_rest_of_its_batch(table, generator, at, shape):
    rows, truth = stream(generator, 2 * ROWS, *shape)
    rule = learning_rule(table, *shape)
    rule.learn(rows[:ROWS], truth[:ROWS])
    before, fresh = rule.state(), rows[ROWS:]
    whole = rule.log_odds(fresh)
    parts = [rule.log_odds(fresh[a:b]) for a, b in itertools.pairwise(at)]
    assert whole.tobytes() == np.concatenate(parts).tobytes()
    assert whole.tobytes() == rule.log_odds(np.asfortranarray(fresh)).tobytes()
    labels, odds = rule.judge(fresh)
    assert odds.tobytes() == whole.tobytes()
    assert (labels == rule.predict(fresh)).all()
    assert (labels == whole.argmax(axis=1)).all()
    assert same(before, rule.state()), "predicting must not change what was learned"


hard_values = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-160, -1e-9, 1e9, 1e154, 1e300, -1e300, 1.7e308, -1.7e308]
)


@every_rule
@settings(max_examples=30)
@given(
    st.lists(st.tuples(hard_values, hard_values, hard_values), min_size=1, max_size=40),
    st.sampled_from([2, 3]),
    st.data(),
)
def test_log_odds_are_finite_whatever_the_features(table, values, classes, data):
    rows = np.array(values)
    one_class = data.draw(st.booleans())
    truth = np.array([0 if one_class else t % classes for t in range(len(rows))])
    rule = learning_rule(table, REALS, classes)
    for t in range(len(rows)):
        odds = rule.log_odds(rows)
        assert odds.shape == (len(rows), classes)
        assert np.isfinite(odds).all()
        if classes == 2:
            assert (odds[:, 0] == -odds[:, 1]).all()
        rule.learn(rows[t : t + 1], truth[t : t + 1])
    assert np.isfinite(rule.log_odds(rows)).all()
    assert all(np.isfinite(part).all() for part in rule.state().values())


@every_rule
@settings(max_examples=15)
@given(generators, shapes, st.integers(1, 4))
def test_combining_partitions(table, generator, shape, partitions):
    rows, truth = stream(generator, ROWS, *shape)
    place = generator.integers(0, partitions, ROWS)
    rule = learning_rule(table, *shape)
    states, counts = [], []
    for p in range(partitions + 1):  # the last one has seen nothing
        part = learning_rule(table, *shape)
        part.learn(rows[place == p], truth[place == p])
        states.append(part.state())
        counts.append(int((place == p).sum()))
    if not rule.averages:
        with pytest.raises(LearnerError, match="one"):
            rule.average(states, counts)
        return
    combined = rule.average(states, counts)
    rule.restore(combined)
    assert np.isfinite(rule.log_odds(rows)).all()
    assert same(combined, rule.state())
    if max(counts) == ROWS:
        assert same(combined, states[int(np.argmax(counts))])


@every_rule
def test_it_learns_and_starts_undecided(table):
    generator = np.random.default_rng(7)
    rule = learning_rule(table)
    rows, truth = stream(generator, 1500, outliers=0.0)
    assert (rule.log_odds(rows) == 0.0).all()
    assert (rule.predict(rows) == 0).all(), "ties go to the smaller index"
    rule.learn(rows[:1000], truth[:1000])
    # The sign of the first feature is the best rule there is; it is right in three of four cases.
    best = (rule.predict(rows[1000:]) == truth[1000:]).mean()
    oracle = ((rows[1000:, 0] > 0) == truth[1000:]).mean()
    assert best > oracle - 0.08
