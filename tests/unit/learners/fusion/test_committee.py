"""Hedge over fusion rules."""

import numpy as np
import pytest

from learners.errors import LearnerError
from learners.fusion.active import Active
from learners.fusion.base import Ballot
from learners.fusion.committee import Committee
from learners.fusion.hedge import Hedge
from learners.fusion.peers.fixed import FixedVote
from learners.fusion.registry import make_fusion
from learners.fusion.stack import Stack
from tests.ballots import random_stream, run, snapshot


def members() -> dict:
    return {"majority": FixedVote(3, 2), "stack": Stack(3, 2), "wm": Hedge(3, 2, use="vote")}


def test_members_decide_and_learn_as_they_would_alone():
    """With everybody heard: to a silent LL a member ascribes what its label loses."""
    stream = random_stream(np.random.default_rng(0), 200, 3, 2, silent=0.0)
    edges = list(range(0, 201, 10))
    committee, alone = Committee(members()), members()
    all_fused = run(committee, stream, edges)
    for place, (name, fusion) in enumerate(alone.items()):
        apart = run(fusion, stream, edges)
        for whole, part in zip(all_fused, apart, strict=True):
            assert (whole.votes[:, place] == part.labels).all()
        for table, content in snapshot(fusion).items():
            assert snapshot(committee)[f"{name}.{table}"] == content


def test_it_counts_the_errors_of_each_expert():
    stream = random_stream(np.random.default_rng(1), 100, 3, 2, silent=0.0)
    committee = Committee(members(), with_learners=True)
    (fused,) = run(committee, stream, [0, 100])
    row = committee.tables()["committee"].rows(np.array([0]))[0]
    wrong = fused.votes != stream.truth[:, None]
    assert row.tolist() == [100, *wrong.sum(axis=0).tolist()]
    assert (fused.votes[:, 3:] == stream.ballot.labels).all()
    assert committee.experts(["a", "b", "c"]) == ["majority", "stack", "wm", "a", "b", "c"]


def test_it_comes_to_follow_its_best_member():
    """Two LLs err together, so the majority is bad; the stack finds the third."""
    rng = np.random.default_rng(2)
    n = 3000
    truth = rng.integers(0, 2, n)
    noise = rng.integers(0, 2, n)
    labels = np.stack([truth, noise, noise], axis=1)
    ballot = Ballot.of(labels, rng.integers(0, 2**63, n).astype(np.uint64), classes=2)
    committee = make_fusion("committee", 3, 2, members=["majority", "stack"])
    wrong = 0
    for start in range(0, n, 30):
        part = ballot.take(np.arange(start, start + 30))
        fused = committee.decide(part)
        committee.learn(part, fused, truth[start : start + 30])
        if start >= n // 2:
            wrong += int((fused.labels != truth[start : start + 30]).sum())
    assert wrong == 0
    assert fused.weights[-1, 1] > 0.99


def test_an_active_committee_has_active_members():
    committee = make_fusion("committee", 3, 2, active=True)
    assert isinstance(committee, Committee)
    assert all(isinstance(member, Active) for member in committee.members.values())


def test_what_makes_no_committee_is_refused():
    committee = Committee(members())
    with pytest.raises(LearnerError, match="as its member"):
        Committee({"inner": committee})
    with pytest.raises(LearnerError, match="make its members active"):
        Active(committee)
    with pytest.raises(LearnerError, match="needs members"):
        Committee({})
    with pytest.raises(LearnerError, match="same learners and labels"):
        Committee({"one": FixedVote(3, 2), "other": FixedVote(2, 2)})
    with pytest.raises(LearnerError, match="use must be one of"):
        Committee(members(), use="guess")
