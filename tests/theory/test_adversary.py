"""Whatever bound is shown holds against an adversary that sees the weights.

Labels are late by any rule, overtake each other or never come, learners are silent or explore. A
fusion rule without a theorem shows no bound. `hb experiments theory` plays the same at full length.
"""

from math import log, sqrt

import numpy as np
import pytest

from experiments.adversary import Duel, Partitions, play
from learners.arrays.shares import UNIT
from learners.fusion.hedge import Hedge
from learners.fusion.late_labels import (
    PEAK,
    RATES,
    WIDTH,
    Basis,
    LateLabels,
    blind_pairs,
    bound_at_delay,
    pooled_counts,
    regret_bounds,
)
from learners.fusion.registry import MODES, make_fusion
from learners.theory.promises import (
    delays_table,
    planned_regret_bound,
    regret_bound,
    why_no_regret_bound,
)

BOUNDED = {"ah", "wm", "ch", "ch-vote", "committee"}
OPTIONS = {"committee": {"use": "sample", "with_learners": True}}


def made(mode, learners=2, active=False):
    def make(cubes):
        options = OPTIONS.get(mode, {})
        return make_fusion(mode, learners, 2, cubes=cubes, active=active, **options)

    return make


@pytest.mark.parametrize("delay", [0, 10, 100, 1000])
def test_the_bound_holds_at_every_delay(delay):
    duel = play(made("ah"), Duel(2000, delay))
    assert duel.bound is not None
    assert duel.violations == 0
    if not delay:
        assert duel.bound == pytest.approx(2 * sqrt(2000 * log(2)))
        return
    # Without a rate and a bound that know the delay, Theorem 2's would be exceeded.
    assert duel.bound.max() == pytest.approx(bound_at_delay(2000, 2, delay), rel=0.25)


DUELS = {
    "overtaking": Duel(250, 30, varying=True),
    "never": Duel(250, 10, varying=True, never=0.5),
    "silent": Duel(250, 5, silent=0.5),
    "exploring": Duel(250, 5, exploring=0.4),
    "gullible": Duel(250, gullible=True),
}


@pytest.mark.parametrize("duel", DUELS.values(), ids=DUELS)
@pytest.mark.parametrize("active", [False, True], ids=["all", "active"])
@pytest.mark.parametrize("mode", ["ah", "wm", "committee"])
def test_a_bound_holds_with_late_missing_and_overtaking_labels_and_silence(mode, active, duel):
    played = play(made(mode, 3, active), duel, runs=2)
    assert played.bound is not None
    assert played.violations == 0


@pytest.mark.parametrize("active", [False, True], ids=["all", "active"])
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_has_a_theorem_or_shows_no_bound(mode, active):
    fusion = made(mode, 3, active)(2)
    assert bool(why_no_regret_bound(fusion)) == (mode not in BOUNDED)
    assert (delays_table(fusion) is not None) == (mode in BOUNDED)
    nothing = np.zeros((1, WIDTH), np.int64)
    assert (regret_bound(fusion, nothing[:, 0], nothing) is not None) == (mode in BOUNDED)


def test_a_learner_that_seldom_speaks_and_is_wrong_then_costs_little():
    """Were silence free, it would be trusted: the regret would be twice the bound."""
    duel = play(made("ah"), Duel(3000, gullible=True))
    assert duel.regret.max() < 0.5 * 2 * sqrt(3000 * log(2))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("delay", [0, 10, 100, 1000])
def test_the_bounds_of_several_cubes_hold_over_partitions_that_hear_late(
    delay, partitions, classes
):
    rounds = 1500
    duel = Partitions(partitions, delay, classes).play(rounds)
    assert duel.regret() <= duel.bound()
    assert duel.bound() < 0.9 * rounds or delay >= 100
    for cube in range(duel.cubes):
        assert duel.regret(slice(cube, cube + 1)) <= duel.bound(slice(cube, cube + 1))


def test_the_largest_pace_never_exceeds_what_the_bound_reckons_with():
    """One blind pair among three, all known at the last decision: half a pair is rounded up."""
    late = LateLabels(2, 1)
    cell, never = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    for blind in (0, 0, 2):
        labelled = late.table.rows(cell)[:, 0]
        pace = late.pace(cell, labelled) if blind else np.array([1])
        late.learn(cell, Basis(np.array([blind]), pace, np.array([0])).rows(), never)
    peak = int(late.table.rows(cell)[0, PEAK])
    rates = sqrt(peak * log(2)) + late.table.rows(cell)[0, RATES] / UNIT / 8
    assert peak == 4
    assert regret_bounds(late.table.rows(cell), np.array([3]), 2)[0] >= max(
        rates, 2 * sqrt(peak * log(2))
    )


def test_blind_pairs_are_those_of_a_constant_delay():
    rows, labelled = [], np.array([50])
    for delay in (0, 1, 7):
        count = sum(max(0, t - delay) for t in range(50))
        rows.append([50, count, 0, 0, 0, 0])
    pairs = [int(blind_pairs(np.array([row]), labelled)[0]) for row in rows]
    assert pairs == [0, 49, sum(min(t, 7) for t in range(50))]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("delay", [0, 1, 3, 10, 100, 1000])
@pytest.mark.parametrize("experts", [2, 5])
def test_no_smaller_bound_is_planned_than_a_stream_with_that_delay_has(delay, partitions, experts):
    """Each label is known everywhere `delay` labels late; partitions take turns."""
    rounds, cell, on_time = 1500, np.zeros(1, np.int64), np.zeros(1, np.bool_)
    own = [LateLabels(experts, 1) for _ in range(partitions)]
    pooled, waiting = LateLabels(experts, 1), []
    for t in range(rounds + delay + 1):
        if t > delay:
            own[t % partitions].learn(cell, waiting.pop(0), on_time)
            pooled.table.put(cell, pooled_counts(np.stack([p.table.rows(cell) for p in own])))
        if t < rounds:
            known = pooled.table.rows(cell)[:, 0]
            basis = Basis(known, pooled.pace(cell, known), np.array([len(waiting)]))
            waiting.append(basis.rows())
    rows = pooled.table.rows(cell)
    live = regret_bounds(rows, rows[:, 0], experts, alone=partitions == 1)[0]
    planned = planned_regret_bound(Hedge(experts, 2), rounds, delay=delay, partitions=partitions)
    assert rows[0, 0] == rounds
    assert live <= planned < 1.05 * live
