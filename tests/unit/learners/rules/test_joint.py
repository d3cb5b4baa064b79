"""Rules that learn beside others: together they fit one model, each its own part of it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.errors import LearnerError
from learners.local.features import unit_cube
from learners.rules.bayes import BayesianLogistic
from learners.rules.joint import Following, Heard, Steps, learn_beside
from learners.rules.logistic import Logistic
from learners.rules.odds import sigmoid
from learners.rules.registry import PRESETS, is_joint, make_rule
from learners.rules.rule_committee import SHARED
from tests.strategies import cuts, generators
from tests.unit.learners.rules.samples import LABELS, LEARNING, REALS, learning_rule, same, stream

ROWS = 60
TABLE = LEARNING["joint committee"]
MIXED_TABLE = LEARNING["mixed committee"]


def apart(rng, n, learners=3):
    """Return rows for each of some learners, and labels that need all of them."""
    rows = [rng.normal(size=(n, 2)) for _ in range(learners)]
    score = sum(part[:, 0] for part in rows) + 0.3 * rng.normal(size=n)
    return rows, (score > 0).astype(np.int64)


def fitted(rules, rows, truth, *, late=0, partners=0):
    """Let rules decide, and learn `late` rows later, each told what all had said."""
    log_odds = np.empty((len(truth), len(rules)))
    for t in range(len(truth)):
        now = slice(t, t + 1)
        log_odds[t] = [
            rule.log_odds(part[now])[0, 1] for rule, part in zip(rules, rows, strict=True)
        ]
        if t < late:
            continue
        at = slice(t - late, t - late + 1)
        for i, rule in enumerate(rules):
            own = both(log_odds[at, i])
            remainder = both(log_odds[at].sum(axis=1)) - own
            rule.learn(rows[i][at], truth[at], Heard(remainder, own, partners))
    return log_odds


def both(odds):
    """Return log-odds of two labels from those of the second."""
    return np.column_stack([-odds, odds])


def test_learners_that_share_only_log_odds_take_the_steps_of_one_logistic_regression():
    rows, truth = apart(np.random.default_rng(0), 200)
    rules = [Logistic("l", unit_cube(2), 2, rate=0.1, joint=True) for _ in rows]
    fused = fitted(rules, rows, truth).sum(axis=1)
    scaled = [Logistic("l", unit_cube(2), 2).scaler.learn(part) for part in rows]
    x = np.concatenate([np.column_stack([z, np.ones(len(z))]) for z in scaled], axis=1)
    w = np.zeros(x.shape[1])
    for t, row in enumerate(x):
        assert fused[t] == pytest.approx(w @ row, abs=1e-9)
        w += 0.1 * (truth[t] - sigmoid(float(w @ row))) * row


def test_together_they_are_better_than_each_alone():
    rows, truth = apart(np.random.default_rng(1), 600)
    for kind in (Logistic, BayesianLogistic):
        teams = [[kind("r", unit_cube(2), 2, joint=joint) for _ in rows] for joint in (True, False)]
        jointly, alone = (fitted(rules, rows, truth)[200:] for rules in teams)
        wrong = [
            ((log_odds.sum(axis=1) > 0) != truth[200:]).mean() for log_odds in (jointly, alone)
        ]
        single = ((alone > 0) != truth[200:, None]).mean(axis=0).min()
        assert wrong[0] <= wrong[1] + 0.01
        assert wrong[0] < single - 0.1


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ({"kind": "logistic"}, 0.7),
        ({"kind": "bayes"}, 0.7),
        (TABLE, 0.7),
        (MIXED_TABLE, 0.8),  # until it has heard something, it goes half of the way
    ],
    ids=str,
)
def test_learners_that_are_told_late_do_not_explain_the_same_thing_each(table, left):
    """Three learners see the same: what one has learned since, the others have learned too."""
    rng = np.random.default_rng(5)
    rows, truth = stream(rng, 240)

    def total(**options):
        rules = [learning_rule(joint(table)) for _ in range(3)]
        return fitted(rules, [rows] * 3, truth, **options)[120:].sum(axis=1)

    prompt, blind, aware = total(), total(late=60), total(late=60, partners=2)
    off = [np.abs(odds - prompt).mean() for odds in (blind, aware)]
    assert off[1] < left * off[0]


def test_labels_that_come_at_once_need_no_correction():
    rows, truth = apart(np.random.default_rng(6), 80)
    teams = [
        [learning_rule(joint({"kind": "bayes"}), unit_cube(2)) for _ in rows] for _ in range(2)
    ]
    plain, aware = (fitted(rules, rows, truth, partners=p) for p, rules in enumerate(teams))
    assert np.allclose(plain, aware, atol=1e-9)


def joint(table):
    return table if table["kind"] == "committee" else {**table, "joint": True}


def test_a_mixed_committee_measures_how_far_the_others_go_along_with_it():
    rng = np.random.default_rng(8)
    rows, truth = stream(rng, ROWS)
    own = both(rng.normal(size=ROWS))
    slopes = []
    for theirs in (2.0 * own, both(rng.normal(size=ROWS))):
        rule = learning_rule(MIXED_TABLE)
        assert rule.following.slope(2.0) == 1.0, "half of each, before anything was heard"
        rule.learn(rows, truth, Heard(theirs, own, partners=2))
        slopes.append(rule.following.slope(2.0))
    assert slopes[0] == pytest.approx(2.0, abs=0.05)
    assert abs(slopes[1]) < 0.5


def test_others_that_do_not_go_along_are_taken_as_they_were():
    """Learners that see different things: what one has learned says nothing about the others."""
    following = Following()
    rng = np.random.default_rng(9)
    for theirs, ours in rng.normal(size=(400, 2)).tolist():
        following.add([theirs], [ours])
    lessons = []

    class Listening(Steps):
        def look(self, row):
            return [5.0]

        def learn(self, offsets):
            lessons.append(offsets[0])

    heard = Heard(both(np.ones(1)), both(np.zeros(1)), partners=2)
    learn_beside(Listening(), heard, 2)
    learn_beside(Listening(), heard, 2, following)
    assert lessons[0] == 11.0
    assert lessons[1] == pytest.approx(1.0, abs=1.0)


def test_a_mixed_committee_follows_the_member_that_does_best():
    """Nothing but the second feature's square tells the labels apart, which no line can say."""
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(600, REALS.d))
    truth = (rows[:, 1] ** 2 > 0.5).astype(np.int64)
    rule = learning_rule(MIXED_TABLE)
    assert rule.shares() == pytest.approx([1 / 3] * 3)
    rule.learn(rows, truth)
    assert rule.shares()[2] > 0.99
    alone = learning_rule({"kind": "committee", "preset": "joint"})
    alone.learn(rows, truth)
    fresh = rng.normal(size=(400, REALS.d))
    wrong = [((fresh[:, 1] ** 2 > 0.5) != model.predict(fresh)).mean() for model in (rule, alone)]
    assert wrong[0] < wrong[1]


def test_what_is_explained_already_teaches_little():
    rows, truth = stream(np.random.default_rng(2), 100)
    sure = np.where(truth[:, None] == np.arange(2), 30.0, -30.0)
    for rule in (BayesianLogistic("b", REALS, 2, joint=True), Logistic("l", REALS, 2, joint=True)):
        rule.learn(rows, truth, Heard.fresh(sure))
        assert np.abs(rule.weights).max() < 1e-6


@settings(max_examples=15)
@given(generators, cuts(ROWS), st.sampled_from([TABLE, MIXED_TABLE]))
def test_the_cut_into_batches_makes_no_difference(generator, at, table):
    for classes in (2, 3):
        rows, truth = stream(generator, ROWS, classes=classes)
        theirs, own = generator.normal(size=(2, ROWS, classes))
        own[generator.random(ROWS) < 0.2] = np.nan
        whole, parts = (learning_rule(table, classes=classes) for _ in range(2))
        whole.learn(rows, truth, Heard(theirs, own, partners=2))
        for a, b in itertools.pairwise(at):
            parts.learn(rows[a:b], truth[a:b], Heard(theirs[a:b], own[a:b], partners=2))
        assert same(whole.state(), parts.state())


def test_others_that_say_nothing_make_no_difference():
    rows, truth = stream(np.random.default_rng(3), ROWS)
    listening, untold = learning_rule(TABLE), learning_rule(TABLE)
    listening.learn(rows, truth, Heard.fresh(np.zeros((ROWS, 2))))
    untold.learn(rows, truth)
    assert same(listening.state(), untold.state())
    alone = learning_rule({"kind": "bayes"})
    deaf = learning_rule({"kind": "bayes"})
    alone.learn(rows, truth)
    deaf.learn(rows, truth, Heard.fresh(np.ones((ROWS, 2))))
    assert same(alone.state(), deaf.state()), "a rule that is not joint does not listen"


@pytest.mark.parametrize("log_odds", [np.zeros((ROWS, 3)), np.full((ROWS, 2), np.inf)])
def test_what_others_said_is_checked(log_odds):
    rows, truth = stream(np.random.default_rng(4), ROWS)
    rule = learning_rule(TABLE)
    before = rule.state()
    with pytest.raises(LearnerError, match="log-odds must be finite"):
        rule.learn(rows, truth, Heard.fresh(log_odds))
    assert same(before, rule.state())


@pytest.mark.parametrize(
    "table",
    [
        *LEARNING.values(),
        {"kind": "bayes", "joint": True},
        {"kind": "committee"},
        *({"kind": "committee", "preset": preset} for preset in PRESETS),
        {"kind": "constant", "label": "benign"},
    ],
    ids=str,
)
def test_the_settings_tell_who_is_joint(table):
    rule = make_rule(table, REALS, LABELS[2])
    assert is_joint(table) == getattr(rule, "joint", False)


def test_in_the_joint_preset_constants_are_small_and_nothing_hides_another():
    rule = make_rule({"kind": "committee", "preset": "joint"}, REALS, LABELS)
    average = np.zeros((1, REALS.d))
    for member in rule.members:
        inputs = member._inputs(average)[0]
        assert np.abs(inputs).sum() == pytest.approx(SHARED), (
            "of an average row, the constant alone"
        )
    additive = make_rule({"kind": "committee", "preset": "additive"}, REALS, LABELS)
    assert np.abs(additive.members[2]._inputs(average)).sum() > 2
