"""Real River models behind the adapter."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from river import linear_model, preprocessing

from learners.errors import LearnerError
from learners.rules.base import RuleError
from learners.rules.registry import make_rule
from tests.unit.learners.rules.samples import LABELS, MIXED, REALS, learning_rule, same, stream

LOGISTIC = {"model": "river.linear_model:LogisticRegression"}
MODELS = {
    "logistic": LOGISTIC,
    "tree": {"model": "river.tree:HoeffdingTreeClassifier", "scaling": "none"},
    "forest": {"model": "river.forest:ARFClassifier", "arguments": {"n_models": 3}},
    "naive bayes": {"model": "river.naive_bayes:GaussianNB", "scaling": "rank"},
    "bagging": {
        "model": "river.ensemble:ADWINBaggingClassifier",
        "arguments": {"model": LOGISTIC, "n_models": 3},
    },
    "one against the rest": {
        "model": "river.multiclass:OneVsRestClassifier",
        "arguments": {"classifier": LOGISTIC},
        "scaling": "log",
    },
}
TWO_LABELS_ONLY = {"logistic", "bagging"}
every_model = pytest.mark.parametrize("name", MODELS)


def river(name, space=MIXED, classes=2):
    return learning_rule({"kind": "river", **MODELS[name]}, space, classes)


def classes_of(name):
    return 2 if name in TWO_LABELS_ONLY else 3


@every_model
def test_batches_restarts_and_replays_give_the_same_predictions(name):
    classes = classes_of(name)
    rows, truth = stream(np.random.default_rng(0), 150, MIXED, classes, outliers=0.0)
    whole, cut = river(name, classes=classes), river(name, classes=classes)
    whole.learn(rows, truth)
    for start in range(0, 150, 30):
        cut.learn(rows[start : start + 30], truth[start : start + 30])
        again = river(name, classes=classes)
        again.restore(cut.state())
        cut = again
    assert whole.log_odds(rows).tobytes() == cut.log_odds(rows).tobytes()
    assert whole.log_odds(rows).shape == (150, classes)


@every_model
def test_finite_from_the_first_row_on(name):
    rows, truth = stream(np.random.default_rng(1), 40, REALS)
    rule = river(name, REALS)
    assert (rule.log_odds(rows) == 0.0).all()
    for t in range(40):
        rule.learn(rows[t : t + 1], truth[t : t + 1])
        odds = rule.log_odds(rows)
        assert np.isfinite(odds).all()
        assert (odds[:, 0] == -odds[:, 1]).all()


def test_equals_river_by_hand():
    rows, truth = stream(np.random.default_rng(2), 200, REALS, outliers=0.0)
    rule = learning_rule({"kind": "river", **LOGISTIC, "scaling": "none"}, REALS)
    model = linear_model.LogisticRegression()
    for row, y in zip(rows, truth.tolist(), strict=True):
        x = dict(zip(REALS.names, row.tolist(), strict=True))
        p = model.predict_proba_one(x)[True]
        odds = rule.log_odds(row[None])
        np.testing.assert_allclose(odds[0, 1], np.log(p) - np.log1p(-p), rtol=1e-9, atol=1e-12)
        model.learn_one(x, y)
        rule.learn(row[None], np.array([y]))


def test_scaled_like_rivers_own_scaler():
    rows, truth = stream(np.random.default_rng(3), 300, REALS, outliers=0.0)
    rule = learning_rule({"kind": "river", **LOGISTIC}, REALS)
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    rule.learn(rows, truth)
    for row, y in zip(rows, truth.tolist(), strict=True):
        model.learn_one(dict(zip(REALS.names, row.tolist(), strict=True)), y)
    ours = rule.predict(rows)
    theirs = [model.predict_one(dict(zip(REALS.names, r, strict=True))) for r in rows.tolist()]
    assert (ours == np.array(theirs)).mean() > 0.95


def test_a_model_that_fails_leaves_the_rule_as_it_was():
    rule = river("tree", REALS)
    rows, truth = stream(np.random.default_rng(4), 20, REALS)
    rule.learn(rows, truth)
    before = rule.log_odds(rows)
    rule.model.learn_one = None  # calling it raises TypeError
    with pytest.raises(RuleError, match="rule river raised TypeError"):
        rule.learn(rows, truth)
    assert (rule.log_odds(rows) == before).all()
    assert rule.scaler is None


def test_it_cannot_be_averaged():
    rule = river("logistic")
    assert not rule.averages
    assert not rule.exact
    with pytest.raises(LearnerError, match="cannot be combined over partitions"):
        rule.average([rule.state()], [1])


def test_a_committee_with_a_model_of_river():
    table = {"kind": "committee", "members": [{"kind": "logistic"}, {"kind": "river", **LOGISTIC}]}
    rule = learning_rule(table)
    assert not rule.exact
    assert not rule.averages
    rows, truth = stream(np.random.default_rng(6), 20)
    rule.learn(rows, truth)
    before, odds = rule.members[0].state(), rule.log_odds(rows)
    rule.members[1].model.learn_one = None  # calling it raises TypeError
    with pytest.raises(RuleError, match="rule committee/river raised TypeError"):
        rule.learn(rows, truth)
    assert same(before, rule.members[0].state())
    assert (rule.log_odds(rows) == odds).all()


def test_a_seed_is_set_where_the_model_takes_one():
    assert river("forest").model.seed == 0
    table = {"kind": "river", "model": "river.forest:ARFClassifier", "arguments": {"seed": 5}}
    assert learning_rule(table).model.seed == 5


@pytest.mark.parametrize(
    ("options", "classes", "message"),
    [
        ({"model": "river.linear_model:Nonsense"}, 2, "option model.*has no callable Nonsense"),
        (
            {"model": "river.tree.nonsense:Model"},
            2,
            "option model.*no module named river.tree.nonsense",
        ),
        ({"model": "river.datasets:Phishing"}, 2, "code of river is not allowed"),
        ({"model": "os:system"}, 2, "code of os is not allowed"),
        ({"model": "river.stats:Mean"}, 2, "Mean has no learn_one, predict_proba_one"),
        ({**LOGISTIC, "arguments": {"speed": 1}}, 2, "option arguments.*raised TypeError.*speed"),
        (LOGISTIC, 3, "supports two labels only"),
        (
            {
                "model": "river.ensemble:ADWINBaggingClassifier",
                "arguments": {"model": {"model": 1}},
            },
            2,
            "a model inside it has model and arguments only",
        ),
    ],
)
def test_wrong_options(options, classes, message):
    with pytest.raises(LearnerError, match=message):
        make_rule({"kind": "river", **options}, REALS, LABELS[classes])


def test_a_state_of_another_layout_is_refused():
    with pytest.raises(LearnerError, match="does not fit its settings: objects"):
        river("tree").restore({})


class RanError(Exception):
    """Code in a state has run."""


class Trap:
    def __reduce__(self):
        return exec, ("from tests.unit.learners.rules.test_river import RanError; raise RanError",)


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        ("pickle", pickle.dumps(Trap()), "a pickle of an earlier version, which could run code"),
        ("objects", pickle.dumps(Trap()), "rule river is refused: it does not read as one"),
        (
            "objects",
            river("naive bayes").state()["objects"].tobytes(),
            "refused: it is of another class",
        ),
    ],
)
def test_a_state_that_was_tampered_with_is_refused(name, stored, message):
    rule = river("tree")
    rows, truth = stream(np.random.default_rng(7), 20, MIXED)
    rule.learn(rows, truth)
    before = rule.log_odds(rows)
    with pytest.raises(LearnerError, match=message):
        rule.restore({name: np.frombuffer(stored, np.uint8)})
    assert (rule.log_odds(rows) == before).all()


def test_without_river_the_message_says_how_to_install_it(monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "river"]:
        monkeypatch.delitem(sys.modules, module)

    class NoRiver:
        def find_spec(self, name, path=None, target=None):
            if name == "river":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [NoRiver(), *sys.meta_path])
    with pytest.raises(LearnerError, match=r"River is not installed.*hedged-bandits\[river\]"):
        make_rule({"kind": "river", **LOGISTIC}, REALS, LABELS[2])


def test_the_registry_does_not_import_river():
    code = "import sys, learners.rules.registry; sys.exit('river' in sys.modules)"
    assert subprocess.call([sys.executable, "-c", code]) == 0


def test_states_of_plain_models_repeat():
    rows, truth = stream(np.random.default_rng(5), 30, REALS)
    left, right = river("logistic", REALS), river("logistic", REALS)
    left.learn(rows, truth)
    right.learn(rows, truth)
    assert same(left.state(), right.state())
    assert left.state()["objects"].dtype == np.uint8
