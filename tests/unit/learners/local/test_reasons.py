"""Reasons: what each feature added to the log-odds, and what is left."""

from math import fsum, ulp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.arrays.seeds import seeds_of
from learners.local.fill_and_scale import Moments
from learners.local.iup import IupConfig
from learners.local.learner import LocalLearner, Pooled
from learners.local.reasons import reasons
from learners.rules.constant import Constant
from learners.rules.registry import make_rule
from tests.strategies import generators
from tests.unit.learners.rules.samples import (
    CATEGORIES,
    LABELS,
    LEARNING,
    MIXED,
    REALS,
    learning_rule,
    stream,
)

ROWS = 60
ADDITIVE = {name: table for name, table in LEARNING.items() if name != "cells"}
every_rule = pytest.mark.parametrize("table", ADDITIVE.values(), ids=ADDITIVE.keys())
shapes = st.tuples(st.sampled_from([REALS, MIXED, CATEGORIES]), st.sampled_from([2, 3]))


def taught(table, generator, space=REALS, classes=2, **options):
    rule = learning_rule(table, space, classes)
    rows, truth = stream(generator, ROWS, space, classes, **options)
    rule.learn(rows, truth)
    return rule, rows


def ask(rules, rows, classes=2):
    learner = LocalLearner(
        rules[0].space, rules, IupConfig(rules=len(rules), cuts=1), classes=classes
    )
    predictions = learner.decide(rows, seeds_of(map(str, range(len(rows)))))
    return predictions, reasons(Pooled(learner.rules, learner.filling), rows, predictions)


@every_rule
@settings(max_examples=15)
@given(generators, shapes)
def test_parts_and_rest_sum_to_the_log_odds_to_the_last_bit(table, generator, shape):
    rule, rows = taught(table, generator, *shape)
    predictions, why = ask([rule], rows, shape[1])
    assert why.at.tolist() == np.flatnonzero(predictions.labels >= 0).tolist()
    assert (why.log_odds == predictions.log_odds[why.at]).all(), "those that were sent"
    assert np.isfinite(why.parts).all()
    for odds, parts, remainder in zip(why.log_odds, why.parts, why.rest, strict=True):
        for k in range(shape[1]):
            off = abs(fsum([*parts[:, k], remainder[k]]) - odds[k])
            assert off <= ulp(max(abs(odds[k]), abs(remainder[k])))


EXACT = [name for name in ADDITIVE if "fourier" not in name and "committee" not in name]


@pytest.mark.parametrize("name", EXACT)
def test_of_two_labels_the_rest_is_the_same_for_all_patients(name):
    rule, rows = taught(ADDITIVE[name], np.random.default_rng(3), MIXED, outliers=0.0)
    _, why = ask([rule], rows)
    if name.startswith("bayes"):
        # What is known of the weights differs by patient, and so the scale of all parts.
        constant = rule.weights[0, -1]
        raw = rule.columns.raw(rows[why.at])
        damping = rule._damping(rule._inputs(rule.scaler.look(raw)))[:, 0]
        np.testing.assert_allclose(why.rest[:, 1], constant / damping, atol=1e-9)
    else:
        np.testing.assert_allclose(
            why.rest, np.broadcast_to(why.rest[0], why.rest.shape), atol=1e-9
        )
    assert np.abs(why.parts[:, 0]).mean() > np.abs(why.parts[:, 2]).mean(), "labels follow age"


def test_a_linear_rule_adds_weight_times_value_and_categories_are_one_feature():
    table = {"kind": "linear", "weights": {"age": 2.0, "sex=f": -1.0, "sex=m": 0.5}, "bias": 0.25}
    rule = make_rule(table, MIXED, LABELS[2])
    rows = np.array([[1.5, 0.0, 9.0, 2.0], [-0.5, 1.0, 9.0, 0.0]])
    predictions, why = ask([rule], rows)
    assert predictions.labels.tolist() == [1, 0]
    assert why.parts[:, :, 1].tolist() == [[3.0, -1.0, 0.0, 0.0], [-1.0, 0.5, 0.0, 0.0]]
    assert why.rest[:, 1].tolist() == [0.25, 0.25]
    assert (why.parts[:, :, 0] == -why.parts[:, :, 1]).all()


def test_what_no_feature_brings_alone_is_in_the_rest():
    rule, rows = taught(LEARNING["bayes, fourier"], np.random.default_rng(3))
    _, why = ask([rule], rows)
    assert why.rest[:, 1].std() > 0.01, "Fourier features are of all features together"


def test_no_opinion_and_rules_that_are_no_sum_have_no_reasons():
    rule = learning_rule({"kind": "logistic"}, REALS)
    predictions, why = ask([rule], np.ones((3, REALS.d)))
    assert (predictions.labels < 0).all()
    assert len(why.at) == len(why.parts) == 0
    cells = learning_rule(LEARNING["cells"], REALS)
    rows, truth = stream(np.random.default_rng(1), ROWS)
    for member in (rule, cells):
        member.learn(rows, truth)
    rules = [cells, rule, Constant(1, classes=2)]
    predictions, why = ask(rules, rows)
    assert not cells.additive
    assert (
        why.at.tolist()
        == np.flatnonzero((predictions.choices.rules == 1) & (predictions.labels >= 0)).tolist()
    )


def test_a_missing_value_counts_as_what_stands_in_for_it():
    rule, rows = taught({"kind": "logistic"}, np.random.default_rng(3))
    learner = LocalLearner(REALS, [rule], IupConfig(rules=1, cuts=1), classes=2)
    gap = rows[:1].copy()
    gap[0, 1] = np.nan
    predictions = learner.decide(gap, seeds_of(["a"]))
    why = reasons(Pooled(learner.rules, learner.filling), gap, predictions)
    filled = Moments(REALS).look(gap)
    assert (why.parts == rule.parts(filled)).all()
