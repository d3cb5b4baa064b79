"""Sleeping experts: what the contenders are, and that the experiment compares them."""

import numpy as np
import pytest

from experiments.adversary import Duel, play
from experiments.sleeping import CONTENDERS, AdaNormalHedge, Squint
from learners.arrays.seeds import seeds_of
from learners.arrays.types import MISSING
from learners.fusion.base import Ballot


@pytest.mark.parametrize("kind", [AdaNormalHedge, Squint])
def test_silence_changes_no_weight_and_being_right_raises_it(kind):
    fusion = kind(2, 2)
    pair = Ballot.of(np.array([[0, 1]]), seeds_of(["a"]), classes=2)
    single = Ballot.of(np.array([[0, MISSING]]), seeds_of(["a"]), classes=2)
    for _ in range(20):
        fusion.learn(single, fusion.decide(single), np.array([1]))
    even = fusion.decide(pair).parts[0]
    assert abs(int(even[0] - even[1])) <= 1, "alone, an expert is the ensemble: no regret"
    for _ in range(20):
        fusion.learn(pair, fusion.decide(pair), np.array([0]))
    parts = fusion.decide(pair).parts[0]
    assert parts[0] > 0.9 * parts.sum()


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_rare_specialist_that_is_right_is_found(name):
    duel = play(lambda cubes: CONTENDERS[name](2, cubes), Duel(150, gifted=True), runs=3)
    assert (duel.regret < 10).all()
