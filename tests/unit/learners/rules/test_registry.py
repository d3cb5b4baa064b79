import inspect

import pytest

from learners.errors import LearnerError
from learners.rules.base import LearningRule
from learners.rules.options import REQUIRED, Option
from learners.rules.registry import KINDS, make_rule
from tests.unit.learners.rules.samples import LABELS, REALS

FUNCTION = "tests.unit.learners.rules.functions:by_age"
SMALLEST = {
    "constant": {"label": "benign"},
    "threshold": {"feature": "age", "value": 3, "above": "malignant", "below": "benign"},
    "linear": {"weights": {"age": 1}},
    "callable": {"function": FUNCTION},
    "sklearn": {"model": "tests.unit.learners.rules.functions:fitted_by_age"},
    "river": {"model": "river.linear_model:LogisticRegression"},
}


def make(table, name=None):
    return make_rule(table, REALS, LABELS[2], name, ["tests"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_table_of_each_kind(kind):
    rule = make({"kind": kind, **SMALLEST.get(kind, {})})
    assert rule.learns == KINDS[kind].learns == isinstance(rule, LearningRule)
    assert rule.name == kind
    assert make({"kind": kind, **SMALLEST.get(kind, {})}, "mine").name == "mine"
    assert make({"kind": kind, "name": "own", **SMALLEST.get(kind, {})}, "mine").name == "own"


@pytest.mark.parametrize("kind", KINDS)
def test_declared_defaults_are_valid_and_required_ones_are_missed(kind):
    for option in KINDS[kind].options:
        table = {"kind": kind, **SMALLEST.get(kind, {})}
        if option.default is REQUIRED:
            del table[option.name]
            with pytest.raises(LearnerError, match=f"option {option.name}: is missing; it is"):
                make(table)
        elif option.default is not None:
            assert option.accepts(option.default, LABELS[2])
            if not (kind == "committee" and option.name == "members"):
                make({**table, option.name: option.default})
        assert option.help


def test_defaults_are_those_of_the_classes():
    """A rule made in Python and one made from an empty table are the same rule."""
    for kind in ("logistic", "bayes", "naive_bayes", "lda"):
        parameters = inspect.signature(type(make({"kind": kind}))).parameters
        for option in KINDS[kind].options:
            assert parameters[option.name].default == option.default


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"rule \?: option kind: is not a kind of rule .kinds: constant, threshold, "),
        ({"kind": ["lda"], "name": "x"}, "rule x: option kind: is not a kind of rule"),
        ({"kind": "magic"}, "rule magic: option kind: is not a kind of rule"),
        ({"kind": "logistic", "name": ""}, "option name: must be a text"),
        ({"kind": "logistic", "name": 7}, "option name: must be a text"),
        (
            {"kind": "logistic", "speed": 1},
            "option speed: unknown option .this kind has rate, l2, scaling, joint",
        ),
        ({"kind": "logistic", "rate": 0}, "option rate: must be a number above 0, at most 10"),
        ({"kind": "logistic", "rate": "fast"}, "option rate: must be a number"),
        ({"kind": "logistic", "rate": True}, "option rate: must be a number"),
        ({"kind": "logistic", "rate": float("nan")}, "option rate: must be a number"),
        ({"kind": "logistic", "rate": 11}, "option rate: must be a number above 0, at most 10"),
        ({"kind": "logistic", "scaling": "z"}, "option scaling: must be one of zscore, log, rank"),
        ({"kind": "bayes", "fourier": 1.5}, "option fourier: must be a whole number of at least 0"),
        ({"kind": "bayes", "fourier": -1}, "option fourier: must be a whole number of at least 0"),
        ({"kind": "lda", "capacity": 7}, "option capacity: must be even"),
        ({"kind": "constant", "label": "purple"}, "option label: must be one of the labels"),
        ({"kind": "linear", "weights": 3}, "option weights: must be a table"),
        (
            {"kind": "linear", "weights": {}, "bias": "x"},
            "option bias: must be a number or a table",
        ),
        ({"kind": "linear", "weights": {}, "softmax": 1}, "option softmax: must be true or false"),
        ({"kind": "callable", "function": 1}, "option function: must be a text"),
        ({"kind": "committee", "members": {}}, "option members: must be a list of tables"),
        ({"kind": "committee", "members": "logistic"}, "option members: must be a list of tables"),
        (
            {"kind": "committee", "members": ["logistic"]},
            "option members: must be a list of tables",
        ),
        (
            {"kind": "committee", "members": [{"kind": "logistic"}], "preset": "kdi"},
            "option members: cannot be given beside a preset",
        ),
        (
            {"kind": "committee", "members": [{"kind": "constant", "label": "benign"}]},
            "committee/constant is of a kind that does not learn",
        ),
        (
            {"kind": "committee", "members": [{"kind": "logistic", "rate": 0}]},
            "rule committee/logistic: option rate",
        ),
        ({"kind": "committee", "members": [{}]}, "option kind: is not a kind of rule"),
    ],
)
def test_wrong_tables_name_the_option(table, message):
    with pytest.raises(LearnerError, match=message):
        make(table)


def test_the_preset_and_the_same_by_hand():
    preset = make({"kind": "committee", "seed": 4})
    by_hand = make(
        {
            "kind": "committee",
            "members": [
                {"kind": "logistic"},
                {"kind": "lda"},
                {"kind": "bayes", "fourier": 60, "seed": 4},
            ],
        }
    )
    for left, right in zip(preset.members, by_hand.members, strict=True):
        assert type(left) is type(right)
        assert left.state().keys() == right.state().keys()
    assert (preset.members[2].fourier.phases == by_hand.members[2].fourier.phases).all()


def test_required_shows_as_such():
    assert repr(REQUIRED) == "required"
    assert Option("x", "number", 1, "", low=2).expected == "a number of at least 2"
