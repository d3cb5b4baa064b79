"""The score from rows of the state tables: rates, regret, its bound, exploration."""

from math import log, sqrt

import numpy as np
import pytest

from agents.board import score
from learners.shares import UNIT
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis
from tests.unit.agents.toy import SETTINGS

PLAIN = SETTINGS.model_copy(
    update={"ensemble": SETTINGS.ensemble.model_copy(update={"mode": "wm", "context": None})}
)
SCORES = {
    0: np.array([90, 10, 2, 18]),
    1: np.array([80, 20, 4, 16]),
    2: np.array([95, 5, 10, 10]),
}
TOTALS = {"left": np.array([120, 200, 50, 0]), "right": np.array([120, 0, 0, 0])}


def mode(settings, name, **changes):
    ensemble = settings.ensemble.model_copy(update={"mode": name, **changes})
    return settings.model_copy(update={"ensemble": ensemble})


def test_rates_are_those_of_the_confusion_counts():
    board = score(PLAIN, SCORES, {}, TOTALS)
    assert board.labelled == 120
    assert board.rates["ensemble"] == {"per": 0.1, "fpr": 0.1, "fnr": 0.1}
    assert board.rates["left"] == {"per": 0.2, "fpr": 0.2, "fnr": 0.2}
    assert board.rates["right"]["fnr"] == 0.5
    assert board.best == "right"
    assert board.exploration == {"left": 0.25, "right": None}
    assert board.learned == {"left": 120, "right": 120}
    assert (board.regret, board.bound, board.recent, board.weights) == (None, None, {}, {})


def test_nothing_labelled_yet_has_no_rates():
    board = score(PLAIN, {}, {}, {})
    assert board.rates["ensemble"] == {"per": None, "fpr": None, "fnr": None}
    assert board.best is None


def test_regret_and_the_bound_of_theorem_2():
    board = score(PLAIN, SCORES, {0: np.array([120, 27 * UNIT, 24, 15])}, TOTALS)
    assert board.regret == pytest.approx(12.0)
    assert board.bound == pytest.approx(2 * sqrt(120 * log(2)))


def test_regret_per_cube_and_the_bound_of_theorem_4():
    rows = {0: np.array([100, 20 * UNIT, 20, 10]), 3: np.array([20, 7 * UNIT, 4, 5])}
    board = score(SETTINGS, SCORES, rows, TOTALS)
    assert board.regret == pytest.approx(27 - 10 - 4)
    assert board.bound == pytest.approx(2 * sqrt(120 * 2 * log(2)))


@pytest.mark.parametrize(
    ("name", "changes", "bounded"),
    [
        ("ah", {}, True),
        ("odds", {}, True),
        ("ah", {"eta_scale": 1.0}, True),
        ("ah", {"eta_scale": 0.0}, False),
        ("ah", {"options": {"rate": "small-loss"}}, False),
        ("stack", {}, False),
        ("majority", {}, False),
    ],
)
def test_a_bound_is_given_only_where_theory_gives_one(name, changes, bounded):
    rows = {0: np.array([120, 27 * UNIT, 24, 15])}
    board = score(mode(PLAIN, name, **changes), SCORES, rows, TOTALS)
    assert (board.bound is not None) == bounded
    assert board.regret is not None


def test_weights_are_those_of_the_latest_diagnosis():
    recent = np.array([[[1, 0], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]]])
    latest = EXAMPLES[Diagnosis]
    board = score(PLAIN, SCORES, {}, TOTALS, recent=recent, latest=latest)
    assert board.weights == latest.weights
    assert board.recent["right"]["per"] == 0.5
