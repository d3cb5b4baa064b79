"""Ballots, and what becomes of them."""

import numpy as np
import pytest

from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions, unsent
from learners.fusion.hedge import Hedge

LABELS = np.array([[0, 1], [1, MISSING], [MISSING, MISSING]])
SEEDS = np.arange(3, dtype=np.uint64)


def test_what_is_not_given_is_unknown_and_takes_no_memory():
    ballot = Ballot.of(LABELS, SEEDS, classes=2)
    assert ballot.cells.tolist() == [0, 0, 0]
    assert not ballot.exploring.any()
    assert np.isnan(ballot.accuracy).all()
    assert ballot.log_odds.shape == (3, 2, 2)
    assert unsent(ballot.log_odds)
    assert unsent(ballot.accuracy)
    assert ballot.present.tolist() == [[True, True], [True, False], [False, False]]
    assert ballot.heard.tolist() == [True, True, False]
    assert ballot.classes == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cells", np.zeros(2, np.int64)),
        ("exploring", np.zeros((3, 3), np.bool_)),
        ("accuracy", np.zeros((2, 2))),
        ("log_odds", np.zeros((3, 2, 3))),
    ],
)
def test_a_field_of_another_shape_is_refused_by_name(field, value):
    with pytest.raises(LearnerError, match=f"ballot: {field} has shape"):
        Ballot.of(LABELS, SEEDS, classes=2, **{field: value})


@pytest.mark.parametrize("label", [-2, 2])
def test_a_label_outside_is_refused(label):
    with pytest.raises(LearnerError, match=r"labels must lie in -1\.\.1"):
        Ballot.of(np.full((3, 2), label), SEEDS, classes=2)


def test_rows_can_be_taken_again_and_again():
    accuracy = np.array([[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]])
    ballot = Ballot.of(LABELS, SEEDS, classes=2, accuracy=accuracy).take(np.array([1, 1, 1, 0]))
    assert ballot.seeds.tolist() == [1, 1, 1, 0]
    assert ballot.accuracy.tolist() == [[0.7, 0.8]] * 3 + [[0.5, 0.6]]
    assert ballot.log_odds.shape == (4, 2, 2)
    assert unsent(ballot.log_odds)


def test_an_accuracy_that_is_the_same_for_all_is_not_taken_for_unsent():
    ballot = Ballot.of(LABELS, SEEDS, classes=2, accuracy=np.broadcast_to(np.float64(0.9), (3, 2)))
    assert not unsent(ballot.accuracy)
    assert ballot.take(np.array([0])).accuracy.tolist() == [[0.9, 0.9]]
    asleep = np.array([[True, False]] * 3)
    assert np.isnan(ballot.without(asleep).accuracy).tolist() == asleep.tolist()


def test_the_expected_loss_is_exact_in_parts():
    fused = FusedPredictions.recalled(
        labels=np.array([0, 1]),
        parts=np.array([[1, UNIT - 1], [UNIT // 4, UNIT - UNIT // 4]]),
        votes=np.array([[0, 1], [1, 1]]),
    )
    assert fused.expected_loss(np.array([0, 0])).tolist() == [UNIT - 1, UNIT]
    assert fused.expected_loss(np.array([1, 1])).tolist() == [1, 0]
    assert fused.weights.tolist() == [[1e-9, 1 - 1e-9], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("learners", "classes", "prefer", "message"),
    [
        (0, 2, 0, "at least one local learner"),
        (3, 1, 0, "at least two labels"),
        (3, 2, 2, "prefer must be a label index in 0..1"),
        (3, 2, -1, "prefer must be a label index in 0..1"),
    ],
)
def test_impossible_sizes_are_refused(learners, classes, prefer, message):
    with pytest.raises(LearnerError, match=message):
        Hedge(learners, classes, prefer=prefer)


@pytest.mark.parametrize(
    "options", [{"eta_scale": -1.0}, {"eta_scale": np.nan}, {"rate": "fast"}, {"use": "draw"}]
)
def test_impossible_settings_of_hedge_are_refused(options):
    with pytest.raises(LearnerError, match=next(iter(options))):
        Hedge(3, 2, **options)
