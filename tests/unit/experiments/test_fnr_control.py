"""The FNR controller of the experiments: what it counts and what it decides."""

import numpy as np
import pytest

from experiments.single_pass.fnr_control import FnrControl
from learners.errors import LearnerError

ONLY = np.zeros(1, np.int64)


def supports(*chances):
    return np.array([[1.0 - p, p] for p in chances])


def test_a_miss_raises_h_and_a_catch_lowers_it():
    control = FnrControl(1, target=0.2, step=0.5)
    control.learn(np.array([0]), np.array([1]))
    assert (control.caught, control.missed) == (0, 1)
    assert control.log_h(ONLY)[0] == pytest.approx(0.4)
    control.learn(np.array([1, 1, 1, 1]), np.array([1, 1, 1, 1]))
    assert control.log_h(ONLY)[0] == pytest.approx(0.0)
    control.learn(np.array([1]), np.array([1]))
    assert control.h() < 1


@pytest.mark.parametrize(("issued", "truth"), [(1, 0), (0, 0), (-1, 1)])
def test_negatives_and_silence_do_not_count(issued, truth):
    control = FnrControl(1)
    control.learn(np.array([issued]), np.array([truth]))
    assert control.caught == control.missed == 0


def test_the_threshold_is_minus_log_h():
    control = FnrControl(1, prior=1.0)
    p = 1.0 / (1.0 + np.exp(1.0))
    labels = control.decide(np.array([0, 0, -1]), supports(p + 1e-9, p - 1e-9, 1.0))
    assert labels.tolist() == [1, 0, -1]


def test_beyond_the_limits_all_or_none_are_positive():
    chances = supports(0.0, 0.5, 1.0)
    high, low = FnrControl(1, limit=2.0, prior=2.0), FnrControl(1, limit=2.0, prior=-2.0)
    assert high.decide(np.zeros(3, int), chances).tolist() == [1, 1, 1]
    low.learn(np.array([1]), np.array([1]))
    assert low.decide(np.zeros(3, int), chances).tolist() == [0, 0, 0]


def test_each_context_cube_has_its_own_h():
    control = FnrControl(1, target=0.5, step=1.0, cubes=4)
    control.learn(np.array([0, 1]), np.array([1, 1]), np.array([2, 3]))
    assert control.log_h(np.arange(4)).tolist() == [0.0, 0.0, 0.5, -0.5]
    labels = control.decide(np.zeros(4, int), supports(0.45, 0.5, 0.45, 0.5), np.arange(4))
    assert labels.tolist() == [0, 1, 1, 0]
    assert (control.caught, control.missed) == (1, 1)


def test_of_other_labels_the_best_is_said():
    control = FnrControl(2, prior=-1.0)
    labels = control.decide(np.array([2, 2]), np.array([[0.1, 0.4, 0.5], [0.05, 0.05, 0.9]]))
    assert labels.tolist() == [1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": 0.0},
        {"target": 1.0},
        {"step": 0.0},
        {"limit": 0.0},
        {"limit": 31.0},
        {"prior": 9},
    ],
)
def test_refuses_what_it_cannot_take(wrong):
    with pytest.raises(LearnerError, match="FNR control"):
        FnrControl(1, **wrong)
