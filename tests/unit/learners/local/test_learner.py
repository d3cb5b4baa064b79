import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.errors import LearnerError
from learners.local.features import unit_cube
from learners.local.iup import Feedback, IupConfig
from learners.local.learner import Labelled, Lessons, LocalLearner
from learners.rules.base import Rule, RuleError
from learners.rules.constant import Constant
from learners.rules.registry import make_rule
from learners.theory.promises import confidence

LABELS = ["benign", "malignant"]
SPACE = unit_cube(2)


class Broken(Rule):
    def _predict(self, rows):
        raise ZeroDivisionError("the value was 0.123")


def learner(*rules, **config):
    return LocalLearner(SPACE, rules, IupConfig(rules=len(rules), **config), classes=2)


def constants():
    return Constant(0, classes=2), Constant(1, classes=2)


def rows(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def ids(n):
    return seeds_of(f"p{i}" for i in range(n))


def teach(ll, predictions, x, truth):
    ll.learn(Labelled.of(predictions, truth), None if x is None else Lessons(x, truth))


def test_the_prediction_is_the_chosen_rules_label():
    ll = learner(*constants(), cuts=2)
    predictions = ll.decide(rows(50), ids(50))
    assert predictions.labels.tolist() == predictions.choices.rules.tolist()
    assert predictions.votes.tolist() == [[0, 1]] * 50
    assert np.isnan(predictions.log_odds).all(), "constant rules have no log-odds"


@pytest.mark.parametrize(("features", "numbered"), [(3, True), (40, False)])
def test_epsilon_needs_cells_whose_points_are_near_each_other(features, numbered):
    """Of too many features, all patients with missing values share one cell: they may be far."""
    rules = constants()
    ll = LocalLearner(unit_cube(features), rules, IupConfig(rules=2, cuts=2), classes=2)
    x = np.random.default_rng(0).random((20, features))
    x[:10, 0] = np.nan
    for _ in range(2):
        teach(ll, ll.decide(x, ids(20)), x, np.zeros(20, np.int64))
    sureness = confidence(ll, ll.decide(x, ids(20)).choices)
    assert np.isnan(sureness.epsilon[:10]).all() == (not numbered)
    assert not np.isnan(sureness.epsilon[10:]).any()


def test_log_odds_are_those_of_the_chosen_rule():
    lr = make_rule({"kind": "bayes"}, SPACE, LABELS)
    ll = learner(Constant(0, classes=2), lr, cuts=1, feedback=Feedback.FULL, exploration=0.0)
    x = rows(200)
    truth = (x[:, 0] > 0.5).astype(np.int64)
    for _ in range(2):
        teach(ll, ll.decide(x, ids(200)), x, truth)
    predictions = ll.decide(x, ids(200))
    assert (predictions.choices.rules == 1).all(), "the rule that learned is better by now"
    np.testing.assert_array_equal(predictions.log_odds, lr.log_odds(x))
    assert (predictions.labels == truth).mean() > 0.85


def test_a_rule_that_learns_needs_the_features():
    ll = learner(make_rule({"kind": "bayes"}, SPACE, LABELS))
    assert ll.learns
    predictions = ll.decide(rows(3), ids(3))
    with pytest.raises(LearnerError, match="needs the features"):
        teach(ll, predictions, None, np.zeros(3, np.int64))


def test_a_rule_that_fails_fails_the_batch_and_the_learner_lives_on():
    ll = learner(Constant(0, classes=2), Broken("mine", 2))
    with pytest.raises(RuleError, match="rule mine raised ZeroDivisionError") as caught:
        ll.decide(rows(3), ids(3))
    assert "0.123" not in str(caught.value)
    sound = learner(*constants())
    assert len(sound.decide(rows(3), ids(3)).labels) == 3


def test_rules_and_configuration_must_agree():
    with pytest.raises(LearnerError, match="1 rules given"):
        LocalLearner(SPACE, [Constant(0, classes=2)], IupConfig(rules=2), classes=2)


def test_confidence_grows_with_the_trials():
    ll = learner(*constants(), cuts=1, exploration=0.0, feedback=Feedback.FULL)
    x = rows(400)
    truth = np.zeros(400, np.int64)
    widths, epsilons = [], []
    for start in range(0, 400, 100):
        predictions = ll.decide(x[start : start + 100], ids(100))
        sure = confidence(ll, predictions.choices)
        assert ((sure.low <= sure.high) & (sure.low >= 0) & (sure.high <= 1)).all()
        widths.append((sure.high - sure.low).mean())
        epsilons.append(sure.epsilon.min())
        teach(ll, predictions, x[start : start + 100], truth[start : start + 100])
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 1.0
    assert epsilons == sorted(epsilons, reverse=True)


@pytest.mark.parametrize(
    ("rules", "options"),
    [([make_rule({"kind": "bayes"}, SPACE, LABELS)], {}), (constants(), {"backoff": 2.0})],
    ids=["a rule that learns", "back-off"],
)
def test_a_rule_that_learns_and_back_off_have_no_interval_and_no_epsilon(rules, options):
    ll = learner(*rules, cuts=1, **options)
    sure = confidence(ll, ll.decide(np.full((5, 2), 0.5), ids(5)).choices)
    for column in (sure.low, sure.high, sure.epsilon):
        assert np.isnan(column).all()
