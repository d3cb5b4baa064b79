import traceback

import numpy as np
import pytest

from learners.errors import LearnerError
from learners.rules.base import Rule, RuleError
from learners.rules.constant import Constant
from learners.rules.registry import make_rule
from tests.unit.learners.rules.samples import LABELS, MIXED, REALS

TWO = LABELS[2]
FUNCTIONS = "tests.unit.learners.rules.functions"
ROWS = np.array([[2.0, 0.0, 4321.5, 0.0], [0.0, 1.0, 1.0, 2.0], [1.0, 0.0, -1.0, 1.0]])


def rule(table, space=MIXED, labels=TWO):
    return make_rule(table, space, labels, packages=("tests", "nowhere_at_all", "broken_rules"))


def test_constant():
    constant = rule({"kind": "constant", "label": "malignant"})
    assert constant.predict(ROWS).tolist() == [1, 1, 1]
    assert np.isnan(constant.log_odds(ROWS)).all()
    assert constant.log_odds(ROWS).shape == (3, 2)
    labels, odds = constant.judge(ROWS)
    assert labels.tolist() == [1, 1, 1]
    assert np.isnan(odds).all()
    assert not constant.learns
    with pytest.raises(LearnerError, match=r"label 2 is outside 0 … 1"):
        Constant(2, classes=2)
    with pytest.raises(LearnerError, match="at least two labels"):
        Constant(0, classes=1)


def test_threshold_is_strictly_above():
    cut = {"kind": "threshold", "feature": "age", "value": 1, "above": "malignant"}
    assert rule({**cut, "below": "benign"}).predict(ROWS).tolist() == [1, 0, 0]


@pytest.mark.parametrize("feature", ["sex", "nonsense"])
def test_threshold_needs_a_real_feature(feature):
    table = {"kind": "threshold", "value": 1.0, "above": "malignant", "below": "benign"}
    with pytest.raises(LearnerError, match="option feature: must name a real feature"):
        rule({**table, "feature": feature})


class TestLinear:
    def test_one_score_of_raw_columns_and_categories(self):
        table = {"kind": "linear", "weights": {"age": 2.0, "sex=m": 5.0, "ward=c": -1}, "bias": -3}
        linear = rule(table)
        # 2*2 - 3, 5 - 1 - 3, 2 - 3
        assert linear.log_odds(ROWS)[:, 1].tolist() == [1.0, 1.0, -1.0]
        assert linear.predict(ROWS).tolist() == [1, 1, 0]

    def test_a_score_may_speak_for_the_first_label(self):
        table = {"kind": "linear", "weights": {"age": 1.0}, "bias": -1.0, "label": "benign"}
        linear = rule(table)
        assert linear.log_odds(ROWS).tolist() == [[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]]
        assert linear.predict(ROWS).tolist() == [0, 1, 0]

    def test_unit_inputs(self):
        table = {"kind": "linear", "weights": {"age": 6.0, "sex=f": 1.0}, "inputs": "unit"}
        odds = rule(table).log_odds(ROWS)[:, 1]  # age lies in -3 … 3
        np.testing.assert_allclose(odds, [5.0 + 1.0, 3.0, 4.0 + 1.0])

    def test_unit_inputs_without_categories(self):
        table = {"kind": "linear", "weights": {"age": 6.0}, "inputs": "unit"}
        odds = rule(table, REALS).log_odds(np.array([[3.0, 0.0, 0.0], [1e300, 0.0, 0.0]]))
        assert odds[:, 1].tolist() == [6.0, 6.0]

    def test_a_table_per_label(self):
        weights = {"low": {"age": -1.0}, "high": {"age": 1.0, "dose": 1.0}}
        table = {"kind": "linear", "weights": weights, "bias": {"middle": 0.5}}
        linear = rule(table, REALS, LABELS[3])
        rows = np.array([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
        assert linear.predict(rows).tolist() == [0, 1, 2]
        scores = np.array([[2.0, 0.5, -2.0], [0.0, 0.5, 0.0], [-1.0, 0.5, 3.0]])
        share = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(linear.log_odds(rows), np.log(share / (1 - share)))
        plain = rule({**table, "softmax": False}, REALS, LABELS[3])
        np.testing.assert_allclose(plain.log_odds(rows), scores)

    def test_scores_stay_finite(self):
        table = {"kind": "linear", "weights": {"age": 1e100, "dose": -1e100}}
        assert np.isfinite(rule(table).log_odds(np.full((1, 4), 1e308) * [1, 0, 1, 0])).all()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"weights": {"agee": 1.0}}, "option weights: names unknown columns agee"),
            ({"weights": {"age": "1"}}, "option weights: must hold numbers"),
            ({"weights": {"age": 1.0}, "bias": {"benign": 1}}, "option bias: must be a number"),
            ({"weights": {"benign": {}, "purple": {}}}, "option weights: names an unknown label"),
            ({"weights": {"benign": {}}, "bias": {"purple": 1}}, "option bias: names an unknown"),
            ({"weights": {"age": 1e101}}, "weights and bias must be finite"),
            ({"weights": {"age": float("nan")}}, "weights and bias must be finite"),
            ({"weights": {"age": 1.0}, "inputs": "z"}, "option inputs: must be one of raw, unit"),
        ],
    )
    def test_wrong_options(self, options, message):
        with pytest.raises(LearnerError, match=message):
            rule({"kind": "linear", **options})

    def test_three_labels_need_a_table_each(self):
        with pytest.raises(LearnerError, match="option weights: needs a table per label"):
            rule({"kind": "linear", "weights": {"age": 1.0}}, REALS, LABELS[3])


class TestCallable:
    @pytest.mark.parametrize(
        ("function", "labels"), [("by_age", [1, 1, 0]), ("as_list", [1, 1, 1])]
    )
    def test_names_become_indices(self, function, labels):
        asked = rule({"kind": "callable", "function": f"{FUNCTIONS}:{function}"})
        assert asked.predict(ROWS).tolist() == labels
        assert asked.predict(ROWS[:0]).tolist() == []

    def test_the_order_of_the_labels_is_the_ensembles(self):
        table = {"kind": "callable", "function": f"{FUNCTIONS}:by_age"}
        assert rule(table, labels=("malignant", "benign")).predict(ROWS).tolist() == [0, 0, 1]

    def test_the_function_cannot_change_the_rows(self):
        rows = ROWS.copy()
        rule({"kind": "callable", "function": f"{FUNCTIONS}:vandal"}).predict(rows)
        assert (rows == ROWS).all()

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            ("raises", r"raised KeyError at functions.py:\d+"),
            ("unknown_label", "a label outside the set"),
            ("too_few", "did not return 3 label names"),
            ("numbers", "did not return 3 label names"),
            ("nothing", "did not return 3 label names"),
        ],
    )
    def test_failures_name_the_rule_and_no_value(self, function, message):
        table = {"kind": "callable", "name": "mine", "function": f"{FUNCTIONS}:{function}"}
        with pytest.raises(RuleError, match=f"rule mine .*{message}") as caught:
            rule(table).predict(ROWS)
        shown = "".join(traceback.format_exception(caught.value))
        assert "secret" not in shown
        assert "purple" not in str(caught.value)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            ("no_colon", "must have the form package.module:name"),
            ("nowhere_at_all:f", "no module named nowhere_at_all"),
            (f"{FUNCTIONS}:missing", "has no callable missing"),
            (f"{FUNCTIONS}:not_callable", "has no callable not_callable"),
        ],
    )
    def test_wrong_names(self, function, message):
        with pytest.raises(LearnerError, match=f"option function.*{message}"):
            rule({"kind": "callable", "function": function})

    def test_only_code_of_allowed_packages_is_imported(self, tmp_path, monkeypatch):
        (tmp_path / "stranger.py").write_text("raise SystemExit('it ran')\n")
        monkeypatch.syspath_prepend(tmp_path)
        table = {"kind": "callable", "function": "stranger:f"}
        with pytest.raises(LearnerError, match=r'not allowed.*\[rules\] packages = \["stranger"\]'):
            rule(table)
        table = {"kind": "callable", "function": f"{FUNCTIONS}:by_age"}
        with pytest.raises(LearnerError, match="code of tests is not allowed"):
            make_rule(table, MIXED, TWO)

    def test_what_an_allowed_package_only_imports_is_not_its_own(self, tmp_path, monkeypatch):
        (tmp_path / "clinic_rules.py").write_text("from os import system\n")
        monkeypatch.syspath_prepend(tmp_path)
        table = {"kind": "callable", "function": "clinic_rules:system"}
        with pytest.raises(LearnerError, match="it comes from posix; code of posix is not allowed"):
            make_rule(table, MIXED, TWO, packages=["clinic_rules"])

    def test_a_module_that_cannot_be_imported(self, tmp_path, monkeypatch):
        (tmp_path / "broken_rules.py").write_text("1 / 0\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(LearnerError, match="importing it raised ZeroDivisionError"):
            rule({"kind": "callable", "function": "broken_rules:f"})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 2, 0]), "a label outside the set"),
        (np.array([0, -1, 0]), "a label outside the set"),
        (np.array([0, 1]), "no 3 label indices"),
        (np.array([0.0, 1.0, 0.0]), "no 3 label indices"),
        (None, "no 3 label indices"),
    ],
)
def test_whatever_is_no_label_is_refused(labels, message):
    class Odd(Rule):
        def _predict(self, rows):
            return labels

    with pytest.raises(RuleError, match=f"rule odd returned {message}"):
        Odd("odd", 2).predict(ROWS)
