"""Fusion by confidence."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.fusion.ballot_log_odds import BARE, CLIP, ballot_log_odds
from learners.fusion.base import Ballot
from learners.fusion.confidence_vote import ConfidenceVote, HedgeOdds
from tests.ballots import random_stream, run
from tests.strategies import generators


def ballot_of(labels, classes=2, **fields) -> Ballot:
    labels = np.array(labels)
    return Ballot.of(labels, np.zeros(len(labels), np.uint64), classes=classes, **fields)


def test_log_odds_take_the_best_that_was_sent():
    nan = np.nan
    ballot = ballot_of(
        [[1, 1, 0, MISSING]],
        accuracy=np.array([[0.9, 0.9, nan, 0.9]]),
        log_odds=np.array([[[-2.0, 2.0], [nan, nan], [nan, nan], [9.0, -9.0]]]),
    )
    odds = log(0.9 / 0.1)
    expected = [[[-2.0, 2.0], [-odds, odds], [BARE, -BARE], [0.0, 0.0]]]
    assert np.allclose(ballot_log_odds(ballot), expected)


@given(st.floats(0.01, 0.99), st.integers(2, 6))
def test_an_accuracy_is_spread_over_the_labels_as_chances_that_sum_to_one(accuracy, classes):
    ballot = ballot_of([[1]], classes, accuracy=np.array([[accuracy]]))
    chances = 1 / (1 + np.exp(-ballot_log_odds(ballot, clip=20.0)[0, 0]))
    assert np.isclose(chances.sum(), 1)
    assert np.isclose(chances[1], accuracy)


@given(generators, st.sampled_from([0.5, 1.0, CLIP]))
def test_no_learner_says_more_than_the_cut_off(rng, clip):
    stream = random_stream(rng, 50, 4, 3)
    log_odds = ballot_log_odds(stream.ballot, clip)
    assert np.abs(log_odds).max() <= clip
    assert not log_odds[~stream.ballot.present].any()


def test_a_sure_learner_outvotes_two_doubtful_ones():
    sure = ballot_of([[1, 0, 0]], accuracy=np.array([[0.95, 0.6, 0.6]]))
    assert ConfidenceVote(3, 2).decide(sure).labels.tolist() == [1]
    odds = np.array([[[-3.0, 3.0], [0.5, -0.5], [0.5, -0.5]]])
    assert HedgeOdds(3, 2).decide(ballot_of([[1, 0, 0]], log_odds=odds)).labels.tolist() == [1]


def test_a_claim_below_one_half_speaks_against_its_label():
    ballot = ballot_of([[1, 1]], accuracy=np.array([[0.1, 0.7]]))
    assert ConfidenceVote(2, 2).decide(ballot).labels.tolist() == [0]


def test_among_three_labels_an_accuracy_of_one_half_still_counts_for_its_label():
    ballot = ballot_of([[2]], 3, accuracy=np.array([[0.5]]))
    fused = ConfidenceVote(1, 3).decide(ballot)
    assert fused.labels.tolist() == [2]
    assert np.allclose(fused.support, [[0.25, 0.25, 0.5]])


@given(st.lists(st.floats(0.05, 0.95), min_size=3, max_size=3))
def test_the_support_is_the_naive_bayes_posterior(accuracy):
    labels = [1, 0, 1]
    fused = ConfidenceVote(3, 2).decide(ballot_of([labels], accuracy=np.array([accuracy])))
    chances = [
        np.prod([a if vote == y else 1 - a for vote, a in zip(labels, accuracy, strict=True)])
        for y in range(2)
    ]
    assert np.allclose(fused.support, np.array([chances]) / sum(chances), atol=1e-6)


def test_without_claims_the_ensemble_weighs_by_what_it_saw():
    """One LL is right nine times in ten, two are hardly better than chance."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 2000)
    right = rng.random((2000, 3)) < np.array([0.9, 0.55, 0.55])
    ballot = ballot_of(np.where(right, truth[:, None], 1 - truth[:, None]))
    vote = ConfidenceVote(3, 2)
    vote.learn(ballot, vote.decide(ballot), truth)
    assert (vote.decide(ballot).labels == ballot.labels[:, 0]).all()


@given(generators)
def test_hedge_odds_is_the_weighted_sum_of_log_odds(rng):
    stream = random_stream(rng, 40, 3, 3)
    fusion = HedgeOdds(3, 3)
    run(fusion, stream, [0, 40])
    fused = fusion.decide(stream.ballot)
    summed = (fused.weights[:, :, None] * ballot_log_odds(stream.ballot)).sum(axis=1)
    heard = stream.ballot.heard
    clear = heard & (np.diff(np.sort(summed, axis=1), axis=1)[:, -1] > 1e-6)
    assert (fused.labels[clear] == summed.argmax(axis=1)[clear]).all()


@pytest.mark.parametrize("clip", [0.0, -1.0, np.nan, np.inf, 31.0])
def test_an_impossible_cut_off_is_refused(clip):
    for fusion in ConfidenceVote, HedgeOdds:
        with pytest.raises(LearnerError, match="clip"):
            fusion(3, 2, clip=clip)
