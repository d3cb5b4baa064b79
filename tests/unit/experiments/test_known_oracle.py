"""Many synthetic runs at once equal the learner itself, run by run, phase by phase."""

import numpy as np
import pytest

from experiments.known_oracle import Known, _drawn, cell_means, phases, run_iup
from learners.local.iup import Iup, IupConfig
from learners.local.partition import Partition, unit_cube
from learners.local.phases import Doubling, Horizon

STEPS = 400


@pytest.mark.parametrize("clock", [Horizon(STEPS), Doubling(30)], ids=["known", "doubling"])
@pytest.mark.parametrize("c", [0.05, 1.0])
@pytest.mark.parametrize("d", [1, 2])
def test_copies_equal_one_learner_with_its_own_clock(clock, c, d):
    seeds = [[7, d, r] for r in range(3)]
    together = run_iup(d, STEPS, clock, c, seeds)
    for r, seed in enumerate(seeds):
        x, right, ties = _drawn(d, STEPS, seed)
        iup = Iup(unit_cube(d), IupConfig(rules=2, clock=clock, exploration=c))
        picked = []
        for t in range(STEPS):
            decision = iup.decide(x[t : t + 1], ties[t : t + 1].astype(np.uint64))
            picked.append(int(decision.rules[0]))
            iup.learn(decision.phase, decision.cubes, decision.rules, right[t : t + 1])
        chance = Known(d).accuracies(x)
        gap = chance.max(axis=1) - chance[np.arange(STEPS), picked]
        assert together.regret[r].tolist() == np.cumsum(gap).tolist()


def test_phases_cover_all_steps_once():
    assert list(phases(Doubling(10), 65)) == [(0, 10, 10), (10, 30, 20), (30, 65, 40)]
    assert list(phases(Horizon(10), 65)) == [(0, 65, 10)]


def test_cell_means_are_those_of_many_points():
    x = np.random.default_rng(0).random((200_000, 2))
    cells = Partition(unit_cube(2), 3).cells(x)
    chance = Known(2).accuracies(x)
    mean = np.bincount(cells, chance[:, 0]) / np.bincount(cells)
    assert cell_means(Known(2), 3)[:, 0] == pytest.approx(mean, abs=0.005)


def test_promises_hold_where_they_should():
    run = run_iup(1, 1000, Horizon(1000), 1.0, [[1, 1, r] for r in range(5)])
    assert run.epsilon_fails <= 1 / 1000
    assert run.interval_misses <= 0.05
    assert (np.diff(run.regret, axis=1) >= 0).all()
