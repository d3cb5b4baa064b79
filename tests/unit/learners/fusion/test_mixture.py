"""The committee mixed by log loss."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.errors import LearnerError
from learners.fusion.ballot_log_odds import label_chances
from learners.fusion.base import Ballot
from learners.fusion.mixture import FLOOR
from learners.fusion.registry import make_fusion
from learners.theory.promises import log_loss_bound, why_no_regret_bound
from tests.ballots import random_stream
from tests.strategies import generators

LENGTH = 60


def losses(mixture, stream):
    """Return the mixture's own log loss, label by label, and each expert's in the end."""
    own = []
    for t, label in enumerate(stream.truth.tolist()):
        row = stream.take(np.array([t]))
        fused = mixture.decide(row.ballot)
        if row.ballot.heard[0]:
            own.append(-log(fused.support[0, label]))
        mixture.learn(row.ballot, fused, row.truth)
    return np.array(own), mixture.tables()["mixture"].rows(np.zeros(1, np.int64))[0]


@settings(max_examples=15)
@given(generators, st.booleans(), st.sampled_from([2, 3]))
def test_its_log_loss_is_at_most_ln_e_above_that_of_its_best_expert(rng, learners_too, classes):
    stream = random_stream(rng, LENGTH, 3, classes)
    mixture = make_fusion("mixture", 3, classes, with_learners=learners_too)
    own, (counted, *experts) = losses(mixture, stream)
    assert counted == len(own)
    assert own.sum() - min(experts) <= log_loss_bound(mixture) + 1e-9
    assert log_loss_bound(mixture) == pytest.approx(log(4 + 3 * learners_too))


def test_the_bound_is_about_what_an_expert_loses_by_its_own_chances():
    """One learner is nearly sure and always right: being kept off 1 costs it 0.005 nats a time."""
    labels = 1000
    truth = np.random.default_rng(2).integers(2, size=labels)
    mixture = make_fusion("mixture", 2, 2, members=["majority"], with_learners=True)
    sure = np.where(truth == 1, 5.0, -5.0)
    unsure = np.zeros(labels)
    odds = np.stack([np.stack([-sure, sure], axis=1), np.stack([unsure, unsure], axis=1)], axis=1)
    votes = np.stack([truth, np.zeros(labels, np.int64)], axis=1)
    own = 0.0
    for t in range(labels):
        ballot = Ballot.of(
            votes[t : t + 1], np.array([t], np.uint64), classes=2, log_odds=odds[t : t + 1]
        )
        fused = mixture.decide(ballot)
        own -= log(fused.support[0, truth[t]])
        mixture.learn(ballot, fused, truth[t : t + 1])
    best = -np.log(label_chances(odds[:, 0])[np.arange(labels), truth]).sum()
    assert log_loss_bound(mixture) < own - best <= log_loss_bound(mixture, labels=labels)


def test_it_follows_the_member_that_gives_the_truth_the_better_chance():
    rng = np.random.default_rng(0)
    stream = random_stream(rng, LENGTH, 3, 2)
    mixture = make_fusion("mixture", 3, 2)
    _, (_, *experts) = losses(mixture, stream)
    parts = mixture.decide(stream.ballot).parts
    assert (parts.argmax(axis=1) == np.argmin(experts)).all()


def test_no_label_is_ever_impossible():
    stream = random_stream(np.random.default_rng(1), LENGTH, 3, 3)
    support = make_fusion("mixture", 3, 3).decide(stream.ballot).support
    assert support[stream.ballot.heard].min() >= FLOOR / 3 - 1e-12


def test_only_modes_that_mix_by_log_loss_bound_it():
    assert log_loss_bound(make_fusion("committee", 3, 2)) is None
    assert log_loss_bound(make_fusion("stack", 3, 2)) is None
    assert why_no_regret_bound(make_fusion("mixture", 3, 2))


def test_it_cannot_have_a_committee_as_its_member():
    with pytest.raises(LearnerError, match="as its member"):
        make_fusion("mixture", 3, 2, members=["wm", "committee"])


def test_whoever_asks_for_a_bound_on_errors_is_told_of_the_one_on_log_loss():
    assert "1.39 nats" in why_no_regret_bound(make_fusion("mixture", 3, 2))[0]
