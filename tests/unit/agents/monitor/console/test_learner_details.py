"""Details of a learner: everything shown can be recounted from its table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.monitor.console.learner_details import learner_details
from learners.theory.running_mean import running_mean_interval
from settings.model import Settings


def settings(**learner):
    rules = {
        "no": {"kind": "constant", "label": "no"},
        "yes": {"kind": "constant", "label": "yes"},
    }
    features = [{"name": "a", "low": 0, "high": 1}, {"name": "b", "low": 0, "high": 1}]
    table = {"features": features, "rules": rules, "cuts": 3, **learner}
    content = {"version": 1, "name": "t", "labels": ["no", "yes"], "positive": "yes"}
    return Settings.model_validate({**content, "learners": {"one": table}})


FULL = settings(feedback="full")
BANDIT = settings(feedback="bandit")


def test_nothing_learned_yet():
    shown = learner_details(FULL, "one", {}, 0)
    assert shown["visited"] == shown["thin"] == 0
    assert shown["biggest"] == shown["thinnest"] == []
    assert [rule["accuracy"] for rule in shown["rules"]] == [None, None]
    assert shown["phases"][0]["cubes"] == "9"


def test_full_feedback_counts_every_label_for_every_rule():
    rows = {
        0: np.array([20, 20, 15, 5, 14]),
        4: np.array([3, 3, 1, 2, 2]),
    }
    shown = learner_details(FULL, "one", rows, 23)
    assert (shown["visited"], shown["thin"], shown["labelled"]) == (2, 1, 23)
    assert [(cube["cube"], cube["labels"]) for cube in shown["biggest"]] == [("0", 20)]
    assert (shown["withheld"], shown["shown_from"]) == (1, 5), "the other may be one patient's"
    biggest = shown["biggest"][0]
    assert biggest["accuracy"] == pytest.approx(14 / 20)
    assert biggest["best"] == "no"
    assert biggest["low"] < 0.7 < biggest["high"]
    no, yes = shown["rules"]
    assert (no["trials"], no["accuracy"]) == (23, pytest.approx(16 / 23))
    assert (yes["trials"], yes["accuracy"]) == (23, pytest.approx(7 / 23))
    assert (no["kind"], no["learns"]) == ("constant", False)
    assert sum(size["cubes"] for size in shown["sizes"]) == 2


def test_bandit_feedback_counts_what_was_chosen():
    shown = learner_details(BANDIT, "one", {2: np.array([4, 6, 1, 6])}, 10)
    assert shown["biggest"][0]["labels"] == 10
    assert shown["biggest"][0]["accuracy"] == pytest.approx(0.7)
    assert shown["biggest"][0]["best"] == "yes"
    assert [rule["trials"] for rule in shown["rules"]] == [4, 6]
    # Where a rule is chosen changes, and so does its accuracy: the interval is of the mean so far.
    low, high = running_mean_interval(np.array([4, 6]), np.array([1, 6]))
    assert [rule["low"] for rule in shown["rules"]] == low.tolist()
    assert [rule["high"] for rule in shown["rules"]] == high.tolist()


def test_each_phase_of_the_doubling_trick_has_cubes_of_its_own():
    learner = settings(doubling=10, cuts=2, horizon=None)
    rows = {1: np.array([5, 5, 5, 0]), 4: np.array([3, 2, 1, 2]), 6: np.array([0, 5, 0, 1])}
    shown = learner_details(learner, "one", rows, 20)
    assert shown["phase"] == 2
    first, second = shown["phases"]
    assert (first["visited"], first["labels"], first["horizon"]) == (1, 10, 10)
    assert (second["visited"], second["labels"], second["horizon"]) == (2, 10, 20)
    assert shown["visited"] == 2, "of the present phase"
    assert {cube["cube"] for cube in shown["biggest"]} == {"0", "2"}


@given(
    st.dictionaries(
        st.integers(0, 8),
        st.tuples(st.integers(1, 3000), st.floats(0, 1)).map(
            lambda pair: np.array([pair[0], pair[0], int(pair[0] * pair[1]), 0, 0])
        ),
        max_size=9,
    )
)
def test_sizes_and_order(rows):
    shown = learner_details(FULL, "one", rows, 0)
    visits = sorted(int(row[0]) for row in rows.values())
    assert sum(size["cubes"] for size in shown["sizes"]) == len(visits)
    for size in shown["sizes"]:
        inside = [v for v in visits if v >= size["from"] and v < (size["below"] or 10**9)]
        assert size["cubes"] == len(inside)
    shared = [v for v in visits if v >= 5]
    assert [cube["labels"] for cube in shown["thinnest"]] == shared[:5]
    assert [cube["labels"] for cube in shown["biggest"]] == shared[::-1][:5]
    assert shown["withheld"] == len(visits) - len(shared)
