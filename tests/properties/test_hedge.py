"""Hedge equals the paper's pseudocode, and its weights behave for any losses."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.seeds import uniform
from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.fusion.active import Active
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.hedge import Hedge
from tests.ballots import Stream, random_stream, run, snapshot
from tests.reference.hedge import LateHedge, PaperActive, PaperHedge
from tests.strategies import cuts, generators

HEDGE_SALT, IDLE_SALT = 1, 2
LENGTH = 60

shapes = st.fixed_dictionaries(
    {
        "learners": st.integers(1, 9),
        "classes": st.integers(2, 4),
        "cubes": st.sampled_from([1, 3, 8]),
        "silent": st.sampled_from([0.0, 0.2, 0.7]),
    }
)


def spoken(row: np.ndarray) -> list[int | None]:
    return [None if label == MISSING else int(label) for label in row]


def paper_run(paper: PaperHedge | PaperActive, stream: Stream):
    """Return the reference's decisions and weights, each label coming before the next decision."""
    ballot = stream.ballot
    draws = uniform(ballot.seeds, HEDGE_SALT).tolist()
    idle = uniform(ballot.seeds, IDLE_SALT).tolist()
    labels, weights = [], []
    for t in range(LENGTH):
        p, votes, truth = int(ballot.cells[t]), spoken(ballot.labels[t]), int(stream.truth[t])
        if isinstance(paper, PaperActive):
            tries = ballot.exploring[t].tolist()
            label, q = paper.predict(p, votes, tries, draws[t], idle[t])
            paper.update(p, votes, tries, truth)
        else:
            label, q = paper.predict(p, votes, draws[t])
            paper.update(p, votes, truth)
        labels.append(MISSING if label is None else label)
        weights.append(q)
    return labels, weights


def silence(stream: Stream) -> Stream:
    """Let nobody explore either: an exploring LL is a silent one."""
    return replace(stream, ballot=replace(stream.ballot, exploring=stream.ballot.exploring & False))


@given(generators, shapes, st.booleans(), st.booleans(), st.sampled_from([1, 5, None]))
def test_with_prompt_labels_and_nobody_silent_every_decision_is_the_papers(
    rng, shape, vote, active, cubes
):
    stream = silence(random_stream(rng, LENGTH, **shape | {"silent": 0.0, "cubes": cubes or 5}))
    learners = shape["learners"]
    use = "vote" if vote else "sample"
    fusion = Hedge(learners, shape["classes"], cubes=cubes, use=use)
    paper = PaperHedge(learners, vote)
    labels, weights = paper_run(PaperActive(paper) if active else paper, stream)
    all_fused = run(Active(fusion) if active else fusion, stream, list(range(LENGTH + 1)))
    assert np.concatenate([fused.labels for fused in all_fused]).tolist() == labels
    # The two ways to the exponential may differ in the last bit, and so in one part of 10^9.
    assert np.abs(np.concatenate([fused.parts for fused in all_fused]) - weights).max() <= 2
    counted = dict(zip(*(part.tolist() for part in fusion.tables()["losses"].items()), strict=True))
    assert counted == {p: [paper.N[p], *paper.L[p]] for p in paper.N}


@given(generators, shapes, st.booleans(), cuts(LENGTH))
def test_with_late_labels_and_silence_it_is_the_reference(rng, shape, vote, edges):
    """Labels come in any order, after batches of decisions; some never come."""
    stream = random_stream(rng, LENGTH, **shape)
    ballot, learners = stream.ballot, shape["learners"]
    fusion = Hedge(
        learners, shape["classes"], cubes=shape["cubes"], use="vote" if vote else "sample"
    )
    reference = LateHedge(learners, vote)
    draws = uniform(ballot.seeds, HEDGE_SALT).tolist()
    waiting: list[tuple[int, FusedPredictions]] = []
    for start, stop in pairwise(edges):
        rows = np.arange(start, stop)
        fused = fusion.decide(ballot.take(rows))
        for t in rows.tolist():
            votes = spoken(ballot.labels[t])
            label, q = reference.predict(int(ballot.cells[t]), votes, draws[t])
            assert fused.labels[t - start] == (MISSING if label is None else label)
            assert np.abs(fused.parts[t - start] - q).max() <= 2
            waiting.append((t, fused.take(np.array([t - start]))))
        for _ in range(int(rng.integers(0, len(waiting) + 1))):
            t, late_fused = waiting.pop(int(rng.integers(len(waiting))))
            fusion.learn(ballot.take(np.array([t])), late_fused, stream.truth[t : t + 1])
            reference.settle(t, int(stream.truth[t]))


any_losses = st.lists(st.integers(0, 2**62), min_size=1, max_size=12)
rates = st.sampled_from(["anytime", "small-loss"])


def hedge_with(losses: list[int], count: int, **options) -> Hedge:
    hedge = Hedge(len(losses), 2, **options)
    hedge.tables()["losses"].put(np.array([0]), np.array([[count, *losses]]))
    return hedge


def everybody(learners: int, n: int = 1) -> Ballot:
    labels = np.tile(np.arange(learners) % 2, (n, 1))
    return Ballot.of(labels, np.arange(n, dtype=np.uint64), classes=2)


@given(any_losses, st.integers(0, 2**62), st.floats(0, 1e6), rates)
def test_weights_are_finite_and_sum_to_one_after_any_losses(losses, count, scale, rate):
    hedge = hedge_with(losses, count, eta_scale=scale, rate=rate)
    fused = hedge.decide(everybody(len(losses)))
    assert fused.parts.sum(axis=1).tolist() == [UNIT]
    assert (fused.parts >= 0).all()
    assert np.isfinite(fused.weights).all()
    # Among equals the first also carries the remainder of rounding, a few parts.
    assert fused.parts[0, int(np.argmin(losses))] >= fused.parts.max() - len(losses)


@given(any_losses, st.integers(0, 10**9), st.integers(0, 2**61))
def test_a_constant_added_to_all_losses_changes_nothing(losses, count, constant):
    ballot = everybody(len(losses), 20)
    before = hedge_with([loss // 2 for loss in losses], count).decide(ballot)
    after = hedge_with([loss // 2 + constant for loss in losses], count).decide(ballot)
    assert (before.parts == after.parts).all()
    assert (before.labels == after.labels).all()


@given(any_losses, st.integers(0, 10**6))
def test_fewer_losses_never_weigh_less(losses, count):
    parts = hedge_with(losses, count).decide(everybody(len(losses))).parts[0]
    by_loss = parts[np.argsort(losses, kind="stable")]
    # As above, the remainder of rounding.
    assert (np.diff(by_loss) <= len(losses)).all()


@given(generators, st.integers(1, 6), rates)
def test_without_its_rate_hedge_is_the_plain_majority(rng, learners, rate):
    stream = random_stream(rng, LENGTH, learners, 3, silent=0.0)
    hedge = Hedge(learners, 3, use="vote", eta_scale=0.0, rate=rate)
    hedge.learn(stream.ballot, hedge.decide(stream.ballot), stream.truth)
    votes = [np.bincount(row, minlength=3).argmax() for row in stream.ballot.labels]
    assert hedge.decide(stream.ballot).labels.tolist() == votes


@given(generators, st.integers(2, 6))
def test_the_order_of_labels_does_not_matter(rng, learners):
    stream = random_stream(rng, LENGTH, learners, 2, cubes=3)
    whole, shuffled = (Hedge(learners, 2, cubes=3) for _ in range(2))
    fused = whole.decide(stream.ballot)
    whole.learn(stream.ballot, fused, stream.truth)
    order = rng.permutation(LENGTH)
    for rows in np.split(order, [7, 20]):
        shuffled.learn(stream.ballot.take(rows), fused.take(rows), stream.truth[rows])
    assert snapshot(whole) == snapshot(shuffled)


@given(generators, st.integers(2, 6))
def test_what_two_partitions_counted_adds_up(rng, learners):
    stream = random_stream(rng, LENGTH, learners, 2, cubes=3)
    whole, left, right = (Hedge(learners, 2, cubes=3) for _ in range(3))
    fused = whole.decide(stream.ballot)
    whole.learn(stream.ballot, fused, stream.truth)
    side = rng.random(LENGTH) < 0.5
    for fusion, mask in (left, side), (right, ~side):
        rows = np.flatnonzero(mask)
        fusion.learn(stream.ballot.take(rows), fused.take(rows), stream.truth[rows])
    cells = np.arange(3)
    for name, table in whole.tables().items():
        parts = np.stack([fusion.tables()[name].rows(cells) for fusion in (left, right)])
        assert (left.pooled(name, parts) == table.rows(cells)).all()


def test_the_followed_learner_is_drawn_by_its_weight():
    n = 200_000
    hedge = hedge_with([0, 3, 9], count=20)
    labels = np.tile([0, 1, 2], (n, 1))
    seeds = np.random.default_rng(5).integers(0, 2**63, n).astype(np.uint64)
    wide = Hedge(3, 3)
    wide.tables()["losses"].put(*hedge.tables()["losses"].items())
    fused = wide.decide(Ballot.of(labels, seeds, classes=3))
    shares = np.bincount(fused.labels, minlength=3) / n
    # Five standard deviations of a share.
    assert np.abs(shares - fused.weights[0]).max() < 5 * np.sqrt(0.25 / n)
