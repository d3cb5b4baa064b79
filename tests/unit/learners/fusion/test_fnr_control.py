"""The FNR controller: what it counts, what it decides, and that it fits any fusion rule."""

import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.errors import LearnerError
from learners.fusion.base import Ballot
from learners.fusion.fnr_control import Controlled, FnrControl
from learners.fusion.registry import MODES, make_fusion

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
    said = control.decide(np.array([0, 0, -1]), supports(p + 1e-9, p - 1e-9, 1.0))
    assert said.tolist() == [1, 0, -1]


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
    said = control.decide(np.zeros(4, int), supports(0.45, 0.5, 0.45, 0.5), np.arange(4))
    assert said.tolist() == [0, 1, 1, 0]
    assert (control.caught, control.missed) == (1, 1)


def test_of_other_labels_the_best_is_said():
    control = FnrControl(2, prior=-1.0)
    said = control.decide(np.array([2, 2]), np.array([[0.1, 0.4, 0.5], [0.05, 0.05, 0.9]]))
    assert said.tolist() == [1, 2]


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


def test_refuses_a_positive_label_that_does_not_exist():
    with pytest.raises(LearnerError, match="positive label"):
        Controlled(make_fusion("wm", 3, 2), FnrControl(2))


@pytest.mark.parametrize("mode", [mode for mode in MODES if not mode.startswith("ch")])
def test_wraps_every_fusion_rule(mode):
    rng = np.random.default_rng(5)
    plain = make_fusion(mode, 3, 2)
    fusion = Controlled(make_fusion(mode, 3, 2), FnrControl(1, target=0.05, step=1.0))
    truth = rng.integers(0, 2, 400)
    labels = np.where(rng.random((400, 3)) < 0.7, truth[:, None], 1 - truth[:, None])
    missed = 0
    for t in range(400):
        seeds = seeds_of([str(t)])
        ballot = Ballot.of(labels[t : t + 1], seeds, classes=2)
        verdict = fusion.decide(ballot)
        missed += int(truth[t] == 1 and verdict.labels[0] == 0)
        fusion.learn(ballot, verdict, truth[t : t + 1])
        plain.learn(ballot, plain.decide(ballot), truth[t : t + 1])
    assert fusion.control.missed == missed
    positives = int((truth == 1).sum())
    assert abs(missed / positives - 0.05) <= fusion.control.bound(positives)
    assert set(plain.tables()) < set(fusion.tables())
    assert fusion.experts(["a", "b", "c"]) == plain.experts(["a", "b", "c"])
    rows = fusion.control.table.rows(np.zeros(1, np.int64))
    pooled = fusion.pooled("fnr_control", np.stack([rows, rows]))
    assert (pooled == 2 * rows).all()
