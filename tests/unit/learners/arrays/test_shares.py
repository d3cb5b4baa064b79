"""Weights in whole parts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.shares import UNIT, completed, draw, rounded, tally, winner
from learners.arrays.types import MISSING
from learners.fusion.weighted import weigh

weights = st.lists(st.floats(0, 1e300), min_size=1, max_size=12)


@given(weights, st.data())
def test_rows_share_out_the_whole_unit_among_the_present(row, data):
    present = np.array([data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))])
    parts = completed(rounded(np.array([row]), present))
    assert (parts >= 0).all()
    assert parts.sum() == (UNIT if present.any() else 0)
    assert not parts[~present].any()


@given(weights)
def test_rounding_moves_a_share_by_less_than_a_part_per_expert(row):
    parts = completed(rounded(np.array([row]), np.ones((1, len(row)), np.bool_)))
    scaled = np.array(row) / max(row) if max(row) > 0 else np.ones(len(row))
    assert np.abs(parts[0] - scaled / scaled.sum() * UNIT).max() <= len(row)


def test_without_any_weight_the_present_are_equal():
    present = np.array([[True, False, True], [False, False, False]])
    assert rounded(np.zeros((2, 3)), present).tolist() == [[UNIT // 2, 0, UNIT // 2], [0, 0, 0]]


def test_tally_counts_votes_for_and_against_and_leaves_out_the_absent():
    votes = np.array([[0, 1, 1, MISSING], [2, 2, 0, 0]])
    parts = np.array([[5, 2, 1, 9], [4, -6, 1, 0]])
    assert tally(votes, parts, 3).tolist() == [[5, 3, 0], [1, 0, -2]]


def test_a_tie_goes_to_the_preferred_label_else_to_the_first():
    scores = np.array([[1, 3, 3], [4, 4, 1], [0, 0, 0]])
    present = np.array([[True], [True], [False]])
    assert winner(scores, present).tolist() == [1, 0, MISSING]
    assert winner(scores, present, prefer=2).tolist() == [2, 0, MISSING]


def test_equal_weights_tie_though_the_remainder_goes_to_one():
    """Six equal LLs, three against three: the parts left by rounding must not decide."""
    votes = np.array([[1, 1, 1, 0, 0, 0]])
    fused = weigh(
        votes, np.ones((1, 6)), np.zeros(1, np.uint64), classes=2, use="vote", salt=0, prefer=0
    )
    assert fused.parts[0, 0] != fused.parts[0, 1]
    assert fused.labels.tolist() == [0]


def test_a_draw_never_lands_on_an_expert_without_parts():
    seeds = np.arange(5000, dtype=np.uint64)
    parts = np.tile([0, UNIT // 2, 0, UNIT // 2, 0], (5000, 1))
    votes = np.tile(np.arange(5), (5000, 1))
    assert set(draw(parts, votes, seeds, salt=0).tolist()) == {1, 3}
