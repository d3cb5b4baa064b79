"""The active ensemble learner."""

import numpy as np

from learners.arrays.shares import UNIT
from learners.fusion.active import Active
from learners.fusion.base import Ballot
from learners.fusion.hedge import Hedge


def ballot_of(labels, exploring) -> Ballot:
    labels = np.array(labels)
    seeds = np.arange(len(labels), dtype=np.uint64)
    return Ballot.of(labels, seeds, classes=3, exploring=np.array(exploring))


def test_only_exploiting_learners_are_heard_and_charged():
    ballot = ballot_of([[0, 1, 1]], [[False, True, True]])
    active = Active(Hedge(3, 3, use="vote"))
    fused = active.decide(ballot)
    assert fused.labels.tolist() == [0]
    assert fused.parts.tolist() == [[UNIT, 0, 0]]
    assert fused.votes.tolist() == [[0, 1, 1]]
    active.learn(ballot, fused, np.array([2]))
    assert active.tables()["losses"].rows(np.array([0])).tolist() == [[1, 1, 0, 0]]


def test_when_all_explore_anyone_is_followed_with_equal_chance_and_nobody_is_charged():
    n = 30_000
    ballot = ballot_of([[0, 1, 2]] * n, [[True] * 3] * n)
    for use in "vote", "sample":
        active = Active(Hedge(3, 3, use=use))
        fused = active.decide(ballot)
        shares = np.bincount(fused.labels, minlength=3) / n
        assert np.abs(shares - 1 / 3).max() < 5 * np.sqrt(0.25 / n)
        assert np.abs(fused.parts - UNIT / 3).max() <= 1
        active.learn(ballot, fused, np.zeros(n, np.int64))
        assert active.tables()["losses"].rows(np.array([0])).tolist() == [[n, 0, 0, 0]]
