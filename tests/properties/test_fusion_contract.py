"""What every fusion rule promises, whatever its algorithm."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.registry import MODES, make_fusion
from tests.ballots import random_stream, run, snapshot
from tests.strategies import cuts, generators

LENGTH = 40
CUBES = 3
STATELESS = {"majority", "fixed"}
TIMED = {"ah", "wm", "ch", "ch-vote", "odds", "committee", "mixture", "trackexp"}

every_mode = pytest.mark.parametrize("mode", MODES)
hear = pytest.mark.parametrize("active", [False, True], ids=["all", "active"])
examples = settings(max_examples=10)

learner_counts = st.sampled_from([1, 2, 3, 5])
class_counts = st.sampled_from([2, 3])


def build(mode: str, learners: int, classes: int, active: bool, cubes: int | None = CUBES):
    return make_fusion(mode, learners, classes, cubes=cubes, active=active)


def taught(mode: str, active: bool, rng: np.random.Generator, learners: int, classes: int):
    """Return a fusion rule that has learned something, and a fresh stream."""
    fusion = build(mode, learners, classes, active)
    run(fusion, random_stream(rng, LENGTH, learners, classes, cubes=CUBES), [0, 11, LENGTH])
    return fusion, random_stream(rng, LENGTH, learners, classes, cubes=CUBES)


def same(left: FusedPredictions, right: FusedPredictions) -> bool:
    pairs = (left.labels, right.labels), (left.parts, right.parts), (left.votes, right.votes)
    return all((a == b).all() for a, b in pairs) and np.allclose(left.support, right.support)


@every_mode
@hear
@examples
@given(generators, learner_counts, class_counts)
def test_fused_predictions_have_their_shape_and_sums(mode, active, rng, learners, classes):
    fusion, stream = taught(mode, active, rng, learners, classes)
    fused = fusion.decide(stream.ballot)
    experts = len(fusion.experts([f"ll{i}" for i in range(learners)]))
    heard = stream.ballot.heard
    assert fused.labels.shape == (LENGTH,)
    assert fused.parts.shape == fused.votes.shape == (LENGTH, experts)
    assert fused.support.shape == (LENGTH, classes)
    assert fused.parts.dtype == np.int64
    assert (fused.parts >= 0).all()
    assert (fused.parts.sum(axis=1) == np.where(heard, UNIT, 0)).all()
    assert (fused.parts[fused.votes == MISSING] == 0).all()
    assert np.allclose(fused.support.sum(axis=1), heard)
    assert ((fused.labels == MISSING) == ~heard).all()
    assert ((fused.labels >= MISSING) & (fused.labels < classes)).all()
    assert (fused.expected_loss(stream.truth) <= UNIT).all()


@every_mode
@hear
@examples
@given(generators)
def test_deciding_changes_nothing_and_repeats(mode, active, rng):
    fusion, stream = taught(mode, active, rng, 3, 2)
    before = snapshot(fusion)
    first = fusion.decide(stream.ballot)
    assert same(first, fusion.decide(stream.ballot))
    assert snapshot(fusion) == before


@every_mode
@hear
@examples
@given(generators, cuts(LENGTH), learner_counts, class_counts)
def test_batches_may_be_cut_anywhere(mode, active, rng, edges, learners, classes):
    stream = random_stream(rng, LENGTH, learners, classes, cubes=CUBES)
    whole, pieces = (build(mode, learners, classes, active) for _ in range(2))
    fused = whole.decide(stream.ballot)
    parts = [np.arange(a, b) for a, b in pairwise(edges)]
    for rows in parts:
        assert same(fused.take(rows), pieces.decide(stream.ballot.take(rows)))
    whole.learn(stream.ballot, fused, stream.truth)
    for rows in parts:
        pieces.learn(stream.ballot.take(rows), fused.take(rows), stream.truth[rows])
    assert snapshot(whole) == snapshot(pieces)


@every_mode
@hear
@examples
@given(generators, st.sampled_from([CUBES, None]))
def test_state_written_out_and_put_back_goes_on_alike(mode, active, rng, cubes):
    fusion, stream = taught(mode, active, rng, 3, 2)
    restored = build(mode, 3, 2, active, cubes)
    for name, table in restored.tables().items():
        table.put(*fusion.tables()[name].items())
    halves = [0, LENGTH // 2, LENGTH]
    for continued, resumed in zip(
        run(fusion, stream, halves), run(restored, stream, halves), strict=True
    ):
        assert same(continued, resumed)
    assert snapshot(fusion) == snapshot(restored)


@every_mode
@hear
@examples
@given(generators)
def test_what_was_kept_of_fused_predictions_is_enough_to_learn(mode, active, rng):
    stream = random_stream(rng, LENGTH, 3, 3, cubes=CUBES)
    whole, recalled = (build(mode, 3, 3, active) for _ in range(2))
    fused = whole.decide(stream.ballot)
    whole.learn(stream.ballot, fused, stream.truth)
    remnant = FusedPredictions.recalled(fused.labels, fused.parts, fused.votes, fused.basis)
    recalled.learn(stream.ballot, remnant, stream.truth)
    assert snapshot(whole) == snapshot(recalled)


@every_mode
@hear
@examples
@given(generators)
def test_an_absent_learner_has_no_share_and_no_say(mode, active, rng):
    fusion, stream = taught(mode, active, rng, 4, 2)
    gone = np.zeros((LENGTH, 4), np.bool_)
    gone[:, 2] = True
    ballot = stream.ballot.without(gone)
    fused = fusion.decide(ballot)
    if not fusion.own_experts:
        assert not fused.parts[:, 2].any()
    # Whatever it would have claimed makes no difference.
    louder = Ballot.of(
        ballot.labels,
        ballot.seeds,
        classes=2,
        cells=ballot.cells,
        exploring=ballot.exploring,
        accuracy=np.where(gone, 0.99, ballot.accuracy),
        log_odds=np.where(gone[:, :, None], 4.0, ballot.log_odds),
    )
    assert same(fused, fusion.decide(louder))


@every_mode
@hear
def test_when_nobody_speaks_nothing_is_said_and_no_weight_moves(mode, active):
    fusion, stream = taught(mode, active, np.random.default_rng(3), 3, 2)
    silent = stream.ballot.without(np.ones((LENGTH, 3), np.bool_))
    before = fusion.decide(stream.ballot)
    fused = fusion.decide(silent)
    assert (fused.labels == MISSING).all()
    assert not fused.parts.any()
    assert not fused.expected_loss(stream.truth).any()
    fusion.learn(silent, fused, stream.truth)
    after = fusion.decide(stream.ballot)
    if mode in TIMED:
        # Time goes on: eta falls, or weight is shared. The order of weights stays, up to the
        # remainder of rounding.
        heaviest = after.parts[np.arange(LENGTH), before.parts.argmax(axis=1)]
        assert (after.parts.max(axis=1) - heaviest <= before.parts.shape[1]).all()
    else:
        assert same(before, after)


@every_mode
@hear
def test_a_single_learner_that_is_right_is_followed(mode, active):
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 3, 200)
    seeds = rng.integers(0, 2**63, 200).astype(np.uint64)
    ballot = Ballot.of(truth[:, None], seeds, classes=3, accuracy=np.full((200, 1), 0.9))
    fusion = build(mode, 1, 3, active)
    for start in range(0, 200, 20):
        rows = np.arange(start, start + 20)
        fused = fusion.decide(ballot.take(rows))
        # A perceptron whose weights are zero follows nobody yet.
        if mode != "pwm" or start > 100:
            assert (fused.labels == truth[rows]).all()
        fusion.learn(ballot.take(rows), fused, truth[rows])


@every_mode
@hear
def test_a_late_prediction_still_counts(mode, active):
    """The ballot of a settled instance may hold more predictions than its decision saw."""
    rng = np.random.default_rng(6)
    stream = random_stream(rng, LENGTH, 3, 2, cubes=CUBES, silent=0.0)
    late = np.zeros((LENGTH, 3), np.bool_)
    late[:, 1] = True
    fusion = build(mode, 3, 2, active)
    fused = fusion.decide(stream.ballot.without(late))
    fusion.learn(stream.ballot, fused, stream.truth)
    without = build(mode, 3, 2, active)
    without.learn(stream.ballot.without(late), fused, stream.truth)
    assert (snapshot(fusion) == snapshot(without)) == (mode in STATELESS)


@every_mode
@hear
def test_an_empty_batch_is_nothing(mode, active):
    fusion, stream = taught(mode, active, np.random.default_rng(7), 3, 2)
    before = snapshot(fusion)
    nobody = stream.take(np.arange(0))
    fused = fusion.decide(nobody.ballot)
    assert fused.labels.shape == (0,)
    fusion.learn(nobody.ballot, fused, nobody.truth)
    assert snapshot(fusion) == before


@every_mode
@hear
def test_partitions_pool_into_rows_that_can_decide(mode, active):
    rng = np.random.default_rng(8)
    fusions = [build(mode, 3, 2, active) for _ in range(3)]
    for fusion in fusions[:2]:
        run(fusion, random_stream(rng, LENGTH, 3, 2, cubes=CUBES), [0, LENGTH])
    cells = np.arange(CUBES)
    for name, table in fusions[2].tables().items():
        rows = np.stack([fusion.tables()[name].rows(cells) for fusion in fusions])
        pooled = fusions[0].pooled(name, rows)
        assert pooled.shape == rows.shape[1:]
        assert np.isfinite(pooled).all()
        # A partition that saw nothing makes no difference.
        assert np.allclose(pooled, fusions[0].pooled(name, rows[:2]))
        table.put(cells, pooled)
    stream = random_stream(rng, LENGTH, 3, 2, cubes=CUBES)
    assert (fusions[2].decide(stream.ballot).labels[stream.ballot.heard] >= 0).all()


@every_mode
@hear
def test_wrong_shapes_and_labels_are_refused(mode, active):
    fusion, stream = taught(mode, active, np.random.default_rng(9), 3, 2)
    fused = fusion.decide(stream.ballot)
    narrow = random_stream(np.random.default_rng(9), LENGTH, 2, 2)
    with pytest.raises(ValueError, match="2 learners and 2 labels"):
        fusion.decide(narrow.ballot)
    with pytest.raises(ValueError, match="as many decisions"):
        fusion.learn(stream.ballot, fused, stream.truth[:-1])
    for label in (-1, 2):
        with pytest.raises(ValueError, match=r"labels must lie in 0\.\.1"):
            fusion.learn(stream.ballot, fused, np.full(LENGTH, label))


@every_mode
def test_contexts_are_learned_apart(mode):
    """What is learned in one cube leaves the others as they were."""
    fusion = build(mode, 3, 2, active=False)
    stream = random_stream(np.random.default_rng(10), LENGTH, 3, 2, cubes=1, silent=0.0)
    run(fusion, stream, [0, LENGTH])
    elsewhere = Ballot.of(
        stream.ballot.labels, stream.ballot.seeds, classes=2, cells=np.full(LENGTH, 2)
    )
    assert same(fusion.decide(elsewhere), build(mode, 3, 2, active=False).decide(elsewhere))
