"""Whatever bound is shown holds against an adversary that sees the weights.

Labels are late by any rule, overtake each other or never come, learners are silent or explore. A
fusion rule without a theorem shows no bound. `hb experiments theory` plays the same at full length.
"""

from math import log, sqrt

import numpy as np
import pytest

from experiments.adversary import Duel, play
from learners.fusion.late_labels import WIDTH, blind_pairs, bound_at_delay
from learners.fusion.registry import MODES, make_fusion
from learners.theory.promises import delays_table, regret_bound, why_no_regret_bound

BOUNDED = {"ah", "wm", "ch", "ch-vote", "committee"}
OPTIONS = {"committee": {"use": "sample", "with_learners": True}}


def made(mode, learners=2, active=False):
    def make(cubes):
        options = OPTIONS.get(mode, {})
        return make_fusion(mode, learners, 2, cubes=cubes, active=active, **options)

    return make


@pytest.mark.parametrize("delay", [0, 10, 100, 1000])
def test_the_bound_holds_at_every_delay(delay):
    found = play(made("ah"), Duel(2000, delay))
    assert found.bound is not None
    assert found.violations == 0
    if not delay:
        assert found.bound == pytest.approx(2 * sqrt(2000 * log(2)))
        return
    # Without a rate and a bound that know the delay, Theorem 2's would be exceeded.
    assert found.bound.max() == pytest.approx(bound_at_delay(2000, 2, delay), rel=0.25)


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
    found = play(made(mode, 3, active), duel, runs=2)
    assert found.bound is not None
    assert found.violations == 0


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
    found = play(made("ah"), Duel(3000, gullible=True))
    assert found.regret.max() < 0.5 * 2 * sqrt(3000 * log(2))


def test_blind_pairs_are_those_of_a_constant_delay():
    rows, labelled = [], np.array([50])
    for delay in (0, 1, 7):
        seen = sum(max(0, t - delay) for t in range(50))
        rows.append([50, seen, 0, 0, 0, 0])
    found = [int(blind_pairs(np.array([row]), labelled)[0]) for row in rows]
    assert found == [0, 49, sum(min(t, 7) for t in range(50))]
