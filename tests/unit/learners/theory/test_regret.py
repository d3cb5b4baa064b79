import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.fusion.base import Ballot
from learners.fusion.hedge import Hedge
from learners.local.features import unit_cube
from learners.local.iup import Feedback, Iup, IupConfig
from learners.theory.bounds import hedge_regret
from learners.theory.regret import (
    awake_regret,
    contextual_regret,
    ensemble_regret,
    local_regret_parts,
)


def test_regret_against_the_best_learner():
    assert ensemble_regret(np.array(5 * UNIT), np.array([4, 3, 9])) == 2.0
    assert ensemble_regret(np.array(2 * UNIT), np.array([4, 3])) == -1.0


def test_regret_against_the_best_learner_of_each_cube():
    losses = np.array([[4, 1], [0, 6]])
    assert contextual_regret(np.array(5 * UNIT), losses) == 4.0
    assert contextual_regret(np.array(5 * UNIT), losses[:1]) == ensemble_regret(
        np.array(5 * UNIT), losses[0]
    )


def test_a_learner_that_sleeps_is_a_benchmark_only_while_it_is_awake():
    # The second learner was heard once and was right; the EL lost a half on that instance.
    expected, heard = np.array([UNIT, UNIT, UNIT // 2]), np.array([[1, 0], [1, 0], [1, 1]])
    losses = np.array([2, 0])
    assert ensemble_regret(expected.sum(), losses) == 2.5
    while_heard = (expected[:, None] * heard).sum(axis=0)
    assert awake_regret(while_heard, losses) == 0.5


def test_one_part_is_not_lost_among_many_instances():
    many = 9_000_000_000
    assert ensemble_regret(np.array(many * UNIT + 1), np.array([many])) == 1 / UNIT


def run_hedge(silent=0.0):
    """Sum up what the ensemble learner's agent would: expected losses and errors per learner."""
    rng = np.random.default_rng(5)
    hedge = Hedge(learners=3, classes=2)
    expected, while_heard = np.int64(0), np.zeros(3, np.int64)
    for t in range(400):
        truth = rng.integers(0, 2, 1)
        wrong = rng.random((1, 3)) < (0.1, 0.3, 0.5)
        labels = np.where(rng.random((1, 3)) < silent, MISSING, truth[:, None] ^ wrong)
        ballot = Ballot.of(labels, seeds_of([f"p{t}"]), classes=2)
        fused = hedge.decide(ballot)
        loss = fused.expected_loss(truth)
        expected += loss.sum()
        while_heard += (loss[:, None] * ballot.present).sum(axis=0)
        hedge.learn(ballot, fused, truth)
    losses = hedge.tables()["losses"].rows(np.array([0]))[0, 1:]
    return expected, while_heard, losses


def test_anytime_hedge_stays_under_its_bound():
    expected, while_heard, losses = run_hedge()
    assert 0 < ensemble_regret(expected, losses) <= hedge_regret(400, 3)
    assert awake_regret(while_heard, losses) == ensemble_regret(expected, losses)


def test_with_silent_learners_only_the_waking_regret_makes_sense():
    expected, while_heard, losses = run_hedge(silent=0.5)
    assert awake_regret(while_heard, losses) < ensemble_regret(expected, losses)


# Rows: counts per cube (N per rule, S per rule, perhaps hits), rules, the estimate.
ESTIMATES = [
    ([[10, 5, 9, 1]], 2, 0.9 * 15 - 10),
    ([[10, 5, 9, 1], [4, 0, 2, 0]], 2, 0.9 * 15 - 10),
    ([[10, 0, 9, 0]], 2, 0.0),
    ([[10, 10, 9, 4, 7]], 2, 9 - 7),
    ([[2, 2, 1, 1, 2]], 2, -1.0),
    (np.zeros((0, 4), int), 2, 0.0),
]


@pytest.mark.parametrize(("counts", "rules", "expected"), ESTIMATES)
def test_local_estimate(counts, rules, expected):
    assert local_regret_parts(np.array(counts), rules).sum() / UNIT == pytest.approx(expected)


@pytest.mark.parametrize("feedback", list(Feedback))
def test_local_estimate_reads_the_tables_of_iup(feedback):
    rng = np.random.default_rng(3)
    iup = Iup(unit_cube(1), IupConfig(rules=2, cuts=2, exploration=0.1, feedback=feedback))
    right = np.zeros((2, 2))
    hits = np.zeros(2)
    for t in range(300):
        x = rng.random((1, 1))
        correct = rng.random((1, 2)) < (0.9, 0.2)
        choice = iup.decide(x, seeds_of([f"p{t}"]))
        iup.learn(choice.phase, choice.cubes, choice.rules, correct)
        right[choice.cubes[0]] += correct[0]
        hits[choice.cubes[0]] += correct[0, choice.rules[0]]
    _, rows = iup.tables()[1].items()
    estimate = local_regret_parts(rows, rules=2).sum() / UNIT
    if feedback is Feedback.FULL:
        assert estimate == pytest.approx((right.max(axis=1) - hits).sum())
    else:
        assert 0 <= estimate < 60


def test_rows_of_another_width_are_refused():
    with pytest.raises(LearnerError, match="2 rules"):
        local_regret_parts(np.zeros((1, 3), np.int64), 2)


def test_parts_are_exact_for_many_patients():
    many = 3_000_000_000
    assert local_regret_parts(np.array([[many, 0, many - 1, 0]]), 2).tolist() == [0]
    row = np.array([[2, many, 1, 0, 0]])
    assert local_regret_parts(row, 2).tolist() == [many * UNIT // 2]
