"""Each peer against its definition, written out one instance at a time."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.fusion.base import Ballot
from learners.fusion.hedge import Hedge
from learners.fusion.peers.adaboost import OnlineAdaBoost, boosted_weights
from learners.fusion.peers.blum import Blum
from learners.fusion.peers.fixed import FixedVote
from learners.fusion.peers.pwm import PerceptronMajority
from learners.fusion.peers.single import SingleLearner
from learners.fusion.peers.trackexp import TrackExp
from tests.ballots import random_stream, run
from tests.strategies import generators

LENGTH = 50
ONE_BY_ONE = list(range(LENGTH + 1))
sizes = st.integers(1, 6)


def answers(stream):
    return zip(stream.ballot.labels.tolist(), stream.truth.tolist(), strict=True)


def decided(all_fused):
    return np.concatenate([fused.labels for fused in all_fused])


def state(fusion):
    ((_, table),) = fusion.tables().items()
    return table.rows(np.array([0]))[0]


def heaviest(weights, votes, classes):
    mass = [sum(w for w, h in zip(weights, votes, strict=True) if h == y) for y in range(classes)]
    return None if max(mass) - sorted(mass)[-2] < 1e-6 else int(np.argmax(mass))


@given(generators, sizes, st.integers(2, 4))
def test_blum_halves_the_wrong_and_raises_the_right_on_mistakes(rng, learners, classes):
    stream = random_stream(rng, LENGTH, learners, classes)
    blum = Blum(learners, classes)
    labels = decided(run(blum, stream, ONE_BY_ONE))
    weights = [1.0] * learners
    for t, (votes, label) in enumerate(answers(stream)):
        best = heaviest(weights, votes, classes)
        assert best is None or best == labels[t] or labels[t] == MISSING
        for i, vote in enumerate(votes):
            if vote == MISSING:
                continue
            if vote != label:
                weights[i] *= 1 / 2
            elif labels[t] != label:
                weights[i] *= 3 / 2
    row = state(blum)
    counted = 1.5 ** row[:learners] * 0.5 ** row[learners:]
    assert np.allclose(counted, weights)


@given(generators, sizes)
def test_blum_never_gains_weight(rng, learners):
    """Promotions add at most what demotions take: the argument behind Blum's mistake bound."""
    stream = random_stream(rng, LENGTH, learners, 3)
    blum, before = Blum(learners, 3), float(learners)
    for t in range(LENGTH):
        part = stream.take(np.array([t]))
        blum.learn(part.ballot, blum.decide(part.ballot), part.truth)
        row = state(blum)
        after = float((1.5 ** row[:learners] * 0.5 ** row[learners:]).sum())
        assert after <= before * (1 + 1e-12)
        before = after


@given(generators, sizes)
def test_pwm_is_the_perceptron_on_votes_of_plus_and_minus_one(rng, learners):
    stream = random_stream(rng, LENGTH, learners, 2)
    pwm = PerceptronMajority(learners, 2)
    labels = decided(run(pwm, stream, ONE_BY_ONE))
    w = np.zeros(learners + 1, np.int64)
    for t, (votes, label) in enumerate(answers(stream)):
        if labels[t] == MISSING:
            continue
        s = np.array([1] + [0 if h == MISSING else 2 * h - 1 for h in votes])
        y = 2 * label - 1
        margin = int(w @ s)
        assert labels[t] == (margin > 0)
        if labels[t] != label:
            w += y * s
    row = state(pwm)
    assert row[2:].tolist() == w[1:].tolist()
    assert row[1] - row[0] == 2 * w[0]


def test_pwm_learns_labels_that_no_learner_says():
    """Both LLs always say 0; the bias learns that it is always 2."""
    pwm = PerceptronMajority(2, 3)
    ballot = Ballot.of(np.zeros((1, 2), np.int64), np.zeros(1, np.uint64), classes=3)
    for _ in range(5):
        pwm.learn(ballot, pwm.decide(ballot), np.array([2]))
    assert pwm.decide(ballot).labels.tolist() == [2]


def test_pwm_breaks_ties_as_a_perceptron_does():
    """A score of zero means one fixed label, however the votes stand."""
    labels = np.array([[1, 1, 0], [2, 0, 2], [2, 1, 1]])
    ballot = Ballot.of(labels, np.zeros(3, np.uint64), classes=3)
    assert PerceptronMajority(3, 3).decide(ballot).labels.tolist() == [0, 0, 0]
    assert PerceptronMajority(3, 3, prefer=2).decide(ballot).labels.tolist() == [2, 2, 2]


@given(
    generators, sizes, st.sampled_from([0.0, 0.3, log(2), 5.0]), st.sampled_from([1e-6, 0.05, 0.5])
)
def test_trackexp_is_fixed_share(rng, learners, rate, share):
    stream = random_stream(rng, LENGTH, learners, 3)
    track = TrackExp(learners, 3, rate=rate, share=share)
    labels = decided(run(track, stream, ONE_BY_ONE))
    w = [1 / learners] * learners
    for t, (votes, label) in enumerate(answers(stream)):
        best = heaviest(w, votes, 3)
        assert best is None or best == labels[t] or labels[t] == MISSING
        w = [x * exp(-rate * (h not in (MISSING, label))) for x, h in zip(w, votes, strict=True)]
        w = [x / sum(w) for x in w]
        if learners > 1:
            w = [(1 - share) * x + share / (learners - 1) * (sum(w) - x) for x in w]
    assert state(track)[0] == LENGTH
    assert np.allclose(state(track)[1:], w)


def test_trackexp_turns_to_the_new_best_learner_where_hedge_lingers():
    labels = np.array([[0, 1]] * 600)
    truth = np.repeat([0, 1], 300)
    ballot = Ballot.of(labels, np.arange(600, dtype=np.uint64), classes=2)
    errors = {}
    for name, fusion in ("track", TrackExp(2, 2)), ("hedge", Hedge(2, 2, use="vote")):
        wrong = 0
        for t in range(600):
            part = ballot.take(np.array([t]))
            fused = fusion.decide(part)
            wrong += int(fused.labels[0] != truth[t])
            fusion.learn(part, fused, truth[t : t + 1])
        errors[name] = wrong
    assert errors["track"] < 15
    assert errors["hedge"] > 250


@pytest.mark.parametrize(
    "options", [{"share": 0.0}, {"share": 0.6}, {"rate": -1.0}, {"rate": 1e9}, {"rate": np.nan}]
)
def test_impossible_settings_of_trackexp_are_refused(options):
    with pytest.raises(LearnerError, match=next(iter(options))):
        TrackExp(3, 2, **options)


@given(generators, sizes, st.integers(2, 4))
def test_adaboost_is_oza_and_russells(rng, learners, classes):
    stream = random_stream(rng, LENGTH, learners, classes)
    boost = OnlineAdaBoost(learners, classes)
    run(boost, stream, [0, 20, LENGTH])
    right, wrong = [0.0] * learners, [0.0] * learners
    for votes, label in answers(stream):
        importance = 1.0
        for m, vote in enumerate(votes):
            if vote == MISSING:
                continue
            if vote == label:
                right[m] += importance
                importance *= (right[m] + wrong[m]) / (2 * right[m])
            else:
                wrong[m] += importance
                importance *= (right[m] + wrong[m]) / (2 * wrong[m])
    assert state(boost).tolist() == right + wrong


def test_adaboost_votes_against_a_learner_that_is_mostly_wrong():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    labels = np.stack([1 - truth, rng.integers(0, 2, 300), rng.integers(0, 2, 300)], axis=1)
    labels[::10, 0] = truth[::10]
    ballot = Ballot.of(labels, np.zeros(300, np.uint64), classes=2)
    boost = OnlineAdaBoost(3, 2)
    boost.learn(ballot, boost.decide(ballot), truth)
    fused = boost.decide(ballot)
    assert (fused.labels == truth).mean() > 0.85
    assert not fused.parts[:, 0].any()


@given(generators, st.integers(1, 5), st.integers(2, 4))
def test_offline_boosting_weighs_as_adaboost_does(rng, learners, classes):
    """Against the plain form with linear weights, for as many rounds as there are LLs."""
    truth = rng.integers(0, classes, 40)
    labels = np.where(
        rng.random((40, learners)) < 0.6, truth[:, None], rng.integers(0, classes, (40, learners))
    )
    d, votes = np.full(40, 1 / 40), np.zeros(learners)
    for _ in range(learners):
        errors = [d[labels[:, m] != truth].sum() for m in range(learners)]
        best = int(np.argmin(errors))
        # Where two LLs err equally, either may be taken first, and guessing may or may not be bad.
        assume(np.diff(np.sort([*errors, 1 - 1 / classes])).min() > 1e-9)
        if errors[best] >= 1 - 1 / classes:
            break
        error = max(errors[best], 0.5 / 41)
        alpha = log((1 - error) / error) + log(classes - 1)
        votes[best] += alpha
        d = d * np.exp(alpha * (labels[:, best] != truth))
        d /= d.sum()
    assert np.allclose(boosted_weights(labels, truth, classes), votes)


def test_offline_boosting_is_of_use_and_feeds_a_fixed_vote():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 500)
    right = rng.random((500, 3)) < np.array([0.9, 0.6, 0.6])
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    weights = boosted_weights(labels[:250], truth[:250], 2)
    ballot = Ballot.of(labels[250:], np.zeros(250, np.uint64), classes=2)
    boosted = FixedVote(3, 2, weights=weights).decide(ballot).labels
    plain = FixedVote(3, 2).decide(ballot).labels
    assert (boosted == truth[250:]).mean() > (plain == truth[250:]).mean()


def test_offline_boosting_gives_no_weight_to_learners_that_only_guess():
    truth = np.array([0, 0, 1, 1])
    assert boosted_weights(np.array([[0, 1], [1, 0], [0, 0], [1, 1]]), truth, 2).tolist() == [0, 0]


def test_offline_boosting_needs_instances():
    with pytest.raises(LearnerError, match="at least one labelled instance"):
        boosted_weights(np.zeros((0, 3), np.int64), np.zeros(0, np.int64), 2)


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, np.inf, 0.0]])
def test_a_fixed_vote_needs_a_finite_weight_for_each_learner(weights):
    with pytest.raises(LearnerError, match="3 finite numbers"):
        FixedVote(3, 2, weights=weights)


def test_the_leader_is_found_by_its_rate_of_errors():
    """LL 1 spoke seldom and erred as often as LL 0, which spoke always: its rate is worse."""
    labels = np.array([[0, MISSING, 1]] * 8 + [[1, 1, 1]] * 2)
    truth = np.zeros(10, np.int64)
    ballot = Ballot.of(labels, np.zeros(10, np.uint64), classes=2)
    best, worst = (SingleLearner(3, 2, which=which) for which in ("best", "worst"))
    for fusion in best, worst:
        fusion.learn(ballot, fusion.decide(ballot), truth)
    asked = Ballot.of(np.array([[0, 1, 0]]), np.zeros(1, np.uint64), classes=2)
    assert best.decide(asked).parts.tolist() == [[UNIT, 0, 0]]
    assert worst.decide(asked).parts.tolist() == [[0, 0, UNIT]]
    away = asked.without(np.array([[True, False, True]]))
    assert best.decide(away).parts.tolist() == [[0, UNIT, 0]]


def test_the_average_learner_errs_as_often_as_learners_do_on_average():
    stream = random_stream(np.random.default_rng(2), 20_000, 3, 2, silent=0.0)
    fused = SingleLearner(3, 2, which="average").decide(stream.ballot)
    errors = (stream.ballot.labels != stream.truth[:, None]).mean()
    assert abs((fused.labels != stream.truth).mean() - errors) < 5 * np.sqrt(0.25 / 20_000)
    with pytest.raises(LearnerError, match="best, average or worst"):
        SingleLearner(3, 2, which="median")
