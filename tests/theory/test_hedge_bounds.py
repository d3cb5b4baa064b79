"""Theorems 2 and 4 and the Lemma of the paper, on the code that the product runs.

Losses are made by setting the truth to 0 and the vote of an expert to its loss. Many sequences run
at once, each in a cube of its own. Expected losses are summed in whole parts, so every figure is
exact. The bounds hold at every time, and that is what is checked.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.arrays.shares import UNIT
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.committee import Committee
from learners.fusion.hedge import Hedge, small_loss_regret
from learners.fusion.peers.single import SingleLearner
from learners.fusion.peers.trackexp import TrackExp
from learners.local.partition import Partition, unit_cube
from learners.theory.bounds import contextual_hedge_regret, hedge_regret
from tests.strategies import generators

RUNS = 10
T = 1000

Adversary = Callable[[np.random.Generator, int, np.ndarray], np.ndarray]
"""Given time and the EL's shares (R, M), returns the losses (R, M) of this step."""


def coins(rng, t, parts):
    return rng.random(parts.shape) < 0.5


def one_is_good(rng, t, parts):
    chance = np.full(parts.shape[1], 0.5)
    chance[-1] = 0.4
    return rng.random(parts.shape) < chance


def one_is_bad(rng, t, parts):
    return rng.random(parts.shape) < np.array([0.9] + [0.1] * (parts.shape[1] - 1))


def hit_the_heaviest(rng, t, parts):
    return np.arange(parts.shape[1]) == parts.argmax(axis=1)[:, None]


def spare_the_lightest(rng, t, parts):
    return np.arange(parts.shape[1]) != parts.argmin(axis=1)[:, None]


def hit_the_heavier_half(rng, t, parts):
    return parts > np.median(parts, axis=1, keepdims=True)


def change_half_way(rng, t, parts):
    good = 0 if t < T // 2 else parts.shape[1] - 1
    return rng.random(parts.shape) < np.where(np.arange(parts.shape[1]) == good, 0.05, 0.6)


def take_turns(rng, t, parts):
    return np.broadcast_to(np.arange(parts.shape[1]) == t % parts.shape[1], parts.shape)


ADVERSARIES = [
    coins,
    one_is_good,
    hit_the_heaviest,
    spare_the_lightest,
    hit_the_heavier_half,
    change_half_way,
    take_turns,
]
CUBES = len(ADVERSARIES) * RUNS


def play(hedge: Hedge, adversaries: list[Adversary], experts: int, seed: int = 1):
    """Yield, after each step, the pseudo-regret and the fewest errors of an expert in each run.

    Every adversary plays RUNS runs, one per cube, in its own order.
    """
    rng = np.random.default_rng(seed)
    runs = len(adversaries) * RUNS
    cells, truth = np.arange(runs), np.zeros(runs, np.int64)
    spent = np.zeros(runs, np.int64)
    asked = ballot_of(np.zeros((runs, experts), np.int64), cells)
    for t in range(T):
        fused = hedge.decide(asked)
        blocks = np.split(fused.parts, len(adversaries))
        losses = [move(rng, t, parts) for move, parts in zip(adversaries, blocks, strict=True)]
        ballot = ballot_of(np.concatenate(losses).astype(np.int64), cells)
        fused = FusedPredictions.recalled(fused.labels, fused.parts, ballot.labels)
        spent += fused.expected_loss(truth)
        hedge.learn(ballot, fused, truth)
        best = hedge.tables()["losses"].rows(cells)[:, 1:].min(axis=1)
        yield t + 1, spent / UNIT - best, best


def ballot_of(labels: np.ndarray, cells: np.ndarray) -> Ballot:
    return Ballot.of(labels, cells.astype(np.uint64), classes=2, cells=cells)


@pytest.mark.parametrize("experts", [1, 2, 3, 10, 30])
def test_theorem_2_holds_at_every_time(experts):
    hedge = Hedge(experts, 2, cubes=CUBES)
    for t, regret, _ in play(hedge, ADVERSARIES, experts):
        assert regret.max() <= hedge_regret(t, experts)


@pytest.mark.parametrize("experts", [1, 2, 3, 10])
def test_the_small_loss_rate_keeps_its_bound_at_every_time(experts):
    hedge = Hedge(experts, 2, cubes=CUBES, rate="small-loss")
    bounds = np.array([small_loss_regret(loss, experts) for loss in range(T + 1)])
    for _, regret, best in play(hedge, ADVERSARIES, experts):
        assert (regret <= bounds[best]).all()


def test_the_small_loss_rate_pays_when_an_expert_hardly_errs():
    def rare(rng, t, parts):
        return rng.random(parts.shape) < np.array([0.02, 0.2, 0.2])

    ends = {}
    for rate in ("anytime", "small-loss"):
        *_, (_, regret, _) = play(Hedge(3, 2, cubes=RUNS, rate=rate), [rare], 3)
        ends[rate] = regret.mean()
    assert ends["small-loss"] < ends["anytime"] / 2


@pytest.mark.parametrize(
    ("adversary", "eta_scale"),
    [(one_is_bad, 0.0), (hit_the_heaviest, 1e6)],
    ids=["no rate", "follow the leader"],
)
def test_the_bound_is_not_vacuous(adversary, eta_scale):
    """Without a rate, or with far too large a one, such sequences break the bound."""
    hedge = Hedge(3, 2, cubes=RUNS, eta_scale=eta_scale)
    *_, (t, regret, _) = play(hedge, [adversary], 3)
    assert regret.min() > hedge_regret(t, 3)


@settings(max_examples=15)
@given(
    generators,
    st.sampled_from(ADVERSARIES),
    st.sampled_from([(1, 2), (2, 1), (2, 2), (4, 1), (4, 2)]),
    st.sampled_from([2, 5]),
)
def test_theorem_4_holds_in_every_context_partition(rng, adversary, shape, experts):
    """CH against the best LL of each cube, contexts and losses both chosen by the adversary."""
    m, d = shape
    grid = Partition(unit_cube(d), m)
    hedge = Hedge(experts, 2, cubes=grid.size)
    truth = np.zeros(1, np.int64)
    spent, steps = 0, 250
    for t in range(steps):
        cells = grid.cells(rng.random((1, d)) ** 2)
        asked = ballot_of(np.zeros((1, experts), np.int64), cells)
        losses = adversary(rng, t, hedge.decide(asked).parts).astype(np.int64)
        ballot = ballot_of(losses, cells)
        fused = hedge.decide(ballot)
        spent += int(fused.expected_loss(truth)[0])
        hedge.learn(ballot, fused, truth)
    rows = hedge.tables()["losses"].items()[1]
    assert rows[:, 0].sum() == steps
    regret = spent / UNIT - rows[:, 1:].min(axis=1).sum()
    assert regret <= contextual_hedge_regret(steps, experts, grid.size)


@settings(max_examples=50)
@given(generators, st.integers(1, 3), st.integers(1, 6), st.integers(2, 4))
def test_lemma_the_benchmark_never_falls_as_cubes_halve(rng, d, experts, classes):
    n = 200
    contexts = rng.choice([rng.random(), 0.5, 0.25, 1.0, 0.0], (n, d)) * rng.random((n, d)) ** 0.3
    truth = rng.integers(0, classes, n)
    labels = rng.integers(0, classes, (n, experts))
    rewards = []
    for m in (1, 2, 4, 8):
        grid = Partition(unit_cube(d), m)
        hedge = Hedge(experts, classes, cubes=grid.size)
        ballot = Ballot.of(
            labels, np.zeros(n, np.uint64), classes=classes, cells=grid.cells(contexts)
        )
        hedge.learn(ballot, hedge.decide(ballot), truth)
        rows = hedge.tables()["losses"].items()[1]
        rewards.append(int((rows[:, 0] - rows[:, 1:].min(axis=1)).sum()))
    assert rewards == sorted(rewards)


def test_a_committee_keeps_theorem_2_over_its_members():
    """Its members learn too, and the stream turns against each LL in turn."""
    rng = np.random.default_rng(11)
    members = {
        "track": TrackExp(3, 2),
        "best": SingleLearner(3, 2, which="best"),
        "hedge": Hedge(3, 2),
    }
    committee = Committee(members, use="sample", with_learners=True)
    spent, steps = 0, 1500
    for t in range(steps):
        good = np.arange(3) == (t // 300) % 3
        truth = rng.integers(0, 2, 1)
        right = rng.random(3) < np.where(good, 0.95, 0.4)
        ballot = Ballot.of(
            np.where(right, truth, 1 - truth)[None, :],
            rng.integers(0, 2**63, 1).astype(np.uint64),
            classes=2,
        )
        fused = committee.decide(ballot)
        spent += int(fused.expected_loss(truth)[0])
        committee.learn(ballot, fused, truth)
    losses = committee.tables()["committee"].rows(np.array([0]))[0, 1:]
    assert spent / UNIT - losses.min() <= hedge_regret(steps, 6)
    # It follows the one that fits: every LL on its own errs far more than the committee.
    assert spent / UNIT < 0.6 * losses[3:].min()
