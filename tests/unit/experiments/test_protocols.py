"""The protocols under which the paper's figures are measured."""

import numpy as np
import pytest

from experiments.paper.protocol import make_runs
from experiments.paper.protocols import (
    Protocol,
    _cell,
    exploring,
    measured,
    printed,
    undecided,
)
from experiments.paper.rates import Rates
from experiments.paper.search import choose, just_below
from learners.local.iup import Feedback

FULL = Protocol(Feedback.FULL, 569, "mean")


def rated(per, fnr):
    return Rates(np.array([[per, per], [0.0, 0.0], [fnr, fnr]]))


def test_h_is_chosen_just_below_the_limit_not_for_the_lowest_error():
    tried = {0.5: rated(2.0, 4.0), 1.0: rated(3.0, 2.9), 2.0: rated(2.5, 1.0)}
    assert just_below(tried).h == 1.0
    assert choose(tried).h == 2.0
    assert not just_below({1.0: rated(2.0, 4.0)}).reached


def test_a_figure_is_left_out_only_where_the_limit_is_not_reached():
    figures = measured((FULL, 2, 5, 400))
    assert {"WM.PER", "Average LL.PER", "Exploring.share"} <= set(figures) & set(printed())
    assert all(0.0 <= value <= 100.0 for value in figures.values())
    assert all(value <= 3.0 for key, value in figures.items() if key.endswith(".FNR"))


def test_a_figure_within_two_standard_errors_of_a_tenth_is_not_called_explained_or_not():
    value = printed()["WM.PER"]
    near = {"WM.PER": 1.09 * value, "WM.PER se": 0.02 * value}
    assert "WM.PER" in undecided(near)
    assert "WM.PER" not in undecided(near | {"WM.PER se": 0.001 * value})
    assert _cell(near, "WM.PER") == f"{1.09 * value:.2f} ± {0.02 * value:.2f}"
    assert _cell({}, "WM.PER") is None


def test_under_full_feedback_a_rule_is_untried_on_the_first_visit_to_its_cube():
    runs = make_runs(2, steps=300, split=False)
    figures = exploring(runs, FULL.settings)
    above = runs.data.rows > runs.data.rows.mean(axis=0)
    cubes = [
        len(np.unique(above[runs.draws[r]][:, columns[r]], axis=0))
        for columns in runs.columns(3)
        for r in range(2)
    ]
    assert figures["Exploring.share"] == pytest.approx(100.0 * sum(cubes) / (2 * 3 * 300))
    # With equal counts the chosen rule always has the highest mean.
    assert figures["Exploring as defined.share"] == 0.0


def test_under_bandit_feedback_each_rule_is_tried_once_in_every_cube():
    runs = make_runs(2, steps=300)
    bandit = exploring(runs, Protocol(Feedback.BANDIT, 284, "mean").settings)
    full = exploring(runs, Protocol(Feedback.FULL, 284, "mean").settings)
    assert full["Exploring.share"] < bandit["Exploring.share"] <= 2 * full["Exploring.share"]
