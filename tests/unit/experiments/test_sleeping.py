"""Sleeping experts: what the contenders are, and that the experiment compares them."""

import numpy as np
import pytest

from experiments.adversary import Duel, play
from experiments.sleeping import CONTENDERS, OURS, AdaNormalHedge, Squint, _lead, _notes
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


def test_differences_are_paired_and_ranked_only_beyond_their_errors():
    """AH is one better in every run, however runs differ; and as good as Squint but for chance."""
    spread = np.linspace(0.0, 100.0, 10)
    noise = np.where(np.arange(10) % 2, 1.0, -1.0)
    regrets = {
        OURS: [spread],
        "AdaNormalHedge": [spread + 1.0 + 0.01 * noise],
        "Squint": [spread + noise],
    }
    assert _lead(regrets, "AdaNormalHedge", [0]) == (
        pytest.approx(1.0),
        pytest.approx(0.0, abs=0.01),
    )
    first, *_ = _notes(regrets, np.array([False]), {})
    assert "AdaNormalHedge +1.0 ± 0.0 (in AH's favour)" in first
    assert "(not decided)" in first
