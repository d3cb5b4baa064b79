"""The Bayesian logistic stack."""

from math import exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learners.errors import LearnerError
from learners.fusion.ballot_log_odds import ballot_log_odds
from learners.fusion.base import Ballot
from learners.fusion.stack import Stack, _joint_posterior, _posterior
from tests.ballots import random_stream, run
from tests.strategies import generators


class PlainStack:
    """The update of one stack, written out with numbers."""

    def __init__(self, inputs: int, mean: float = 0.7, variance: float = 0.2) -> None:
        self.w = np.array([mean] * (inputs - 1) + [0.0])
        self.S = variance * np.eye(inputs)

    def fused(self, x: np.ndarray) -> float:
        return float(self.w @ x) / sqrt(1 + pi * float(x @ self.S @ x) / 8)

    def learn(self, x: np.ndarray, y: float, p: float) -> None:
        s = self.S @ x
        v, k = float(x @ s), p * (1 - p)
        self.w = self.w + (y - p) * s
        self.S = self.S - k / (1 + k * v) * np.outer(s, s)


def modes(stacks, inputs, y):
    """Return the chances at the mode of one stack's belief, or of several that share a softmax."""
    m = np.array([stack.w @ x for stack, x in zip(stacks, inputs, strict=True)])
    v = np.array([x @ stack.S @ x for stack, x in zip(stacks, inputs, strict=True)])
    a = m.copy()
    for _ in range(8):
        p, curve = chances(a)
        a -= np.linalg.solve(np.eye(len(a)) + v[:, None] * curve, a - m - v * (y - p))
    return chances(a)[0]


def chances(a):
    """Return p and its derivative by a."""
    if len(a) == 1:
        p = 1 / (1 + np.exp(-a))
        return p, np.array([[p[0] * (1 - p[0])]])
    p = np.exp(a - a.max())
    p /= p.sum()
    return p, np.diag(p) - np.outer(p, p)


@given(generators, st.integers(1, 5), st.sampled_from([2, 3, 5]))
def test_the_stack_equals_its_definition(rng, learners, classes):
    stream = random_stream(rng, 40, learners, classes)
    stack = Stack(learners, classes, clip=1.5)
    plain = [PlainStack(learners + 1) for _ in range(1 if classes == 2 else classes)]
    log_odds = ballot_log_odds(stream.ballot, 1.5)
    for t in range(40):
        part = stream.take(np.array([t]))
        fused = stack.decide(part.ballot)
        own = [np.append(log_odds[t, :, 1 if classes == 2 else y], 1.0) for y in range(len(plain))]
        if not np.any([x[:-1] for x in own]):
            continue
        scores = [model.fused(x) for model, x in zip(plain, own, strict=True)]
        scores = [-scores[0], scores[0]] if classes == 2 else scores
        if np.diff(np.sort(scores))[-1] > 1e-6:
            assert fused.labels[0] == np.argmax(scores)
        stack.learn(part.ballot, fused, part.truth)
        truth = part.truth[0] == (np.array([1]) if classes == 2 else np.arange(classes))
        posterior = modes(plain, own, truth.astype(float))
        for model, x, y, p in zip(plain, own, truth.tolist(), posterior, strict=True):
            model.learn(x, float(y), float(p))
    row = stack.tables()["stack"].rows(np.array([0]))[0]
    beliefs = row[1:].reshape(len(plain), learners + 2, learners + 1)
    for belief, model in zip(beliefs, plain, strict=True):
        assert np.allclose(belief[:-1], model.S, atol=1e-7)
        assert np.allclose(belief[-1], model.w, atol=1e-7)


@given(st.floats(-20, 20), st.floats(0, 400), st.sampled_from([0.0, 1.0]))
def test_the_posterior_solves_its_equation_where_plain_newton_swings(m, v, y):
    p = _posterior(m, v, y)
    assert 0.0 <= p <= 1.0
    # a = m + v (y - p) must give p back.
    a = m + v * (y - p)
    assert abs(p - 1 / (1 + exp(-a))) <= 1e-8


@given(generators, st.integers(3, 10), st.floats(0, 60))
def test_the_joint_posterior_solves_its_equations(rng, classes, spread):
    m, v = rng.normal(0, 5, classes), spread * rng.random(classes)
    y = np.eye(classes)[rng.integers(classes)]
    p = _joint_posterior(m, v, y)
    assert abs(p.sum() - 1.0) < 1e-12
    assert np.allclose(p, chances(m + v * (y - p))[0], atol=1e-3)


def test_labels_share_one_likelihood():
    """Where one label is explained already, the stacks of all labels stay as they are."""
    odds = np.array([[[4.5, -4.5, -4.5]] * 3])
    ballot = Ballot.of(np.zeros((1, 3), np.int64), np.zeros(1, np.uint64), classes=3, log_odds=odds)
    stack = Stack(3, 3, prior_mean=1.0, prior_variance=0.05)
    fused = stack.decide(ballot)
    assert fused.support[0, 0] > 0.99
    assert abs(fused.support.sum() - 1.0) < 1e-12
    before = stack.tables()["stack"].rows(np.zeros(1, np.int64))[0, 1:]
    stack.learn(ballot, fused, np.array([0]))
    after = stack.tables()["stack"].rows(np.zeros(1, np.int64))[0, 1:]
    assert np.allclose(before, after, atol=1e-4)


def test_it_learns_what_the_learners_log_odds_are_worth():
    """LL 0 speaks in half its real log-odds, LL 1 boasts threefold, LL 2 knows nothing."""
    rng = np.random.default_rng(0)
    n = 4000
    real = rng.normal(0, 1.5, (n, 2))
    truth = (rng.random(n) < 1 / (1 + np.exp(-real.sum(axis=1)))).astype(np.int64)
    sent = np.stack([real[:, 0] / 2, real[:, 1] * 3, rng.normal(0, 2, n)], axis=1)
    log_odds = np.stack([-sent, sent], axis=2)
    ballot = Ballot.of(
        (sent > 0).astype(np.int64), np.zeros(n, np.uint64), classes=2, log_odds=log_odds
    )
    stack = Stack(3, 2, clip=30.0)
    stack.learn(ballot, stack.decide(ballot), truth)
    weights = stack.tables()["stack"].rows(np.array([0]))[0].reshape(-1)[1:].reshape(5, 4)[-1]
    assert np.allclose(weights, [2.0, 1 / 3, 0.0, 0.0], atol=0.15)
    errors = (stack.decide(ballot).labels != truth).mean()
    oracle = ((real.sum(axis=1) > 0) != truth).mean()
    assert errors < oracle + 0.01


def test_an_instance_that_says_nothing_is_decided_by_majority_and_teaches_nothing():
    ballot = Ballot.of(
        np.array([[1, 1, 0]]), np.zeros(1, np.uint64), classes=2, log_odds=np.zeros((1, 3, 2))
    )
    stack = Stack(3, 2)
    fused = stack.decide(ballot)
    assert fused.labels.tolist() == [1]
    stack.learn(ballot, fused, np.array([0]))
    assert len(stack.tables()["stack"]) == 0


@given(generators, st.sampled_from([2, 3]))
def test_one_cube_and_many_decide_alike(rng, classes):
    """Decisions for a single cube go another way through the numbers; the result is the same."""
    stream = random_stream(rng, 60, 3, classes, cubes=2)
    stack = Stack(3, classes, cubes=2)
    run(stack, stream, [0, 60])
    together = stack.decide(stream.ballot)
    for cube in range(2):
        rows = np.flatnonzero(stream.ballot.cells == cube)
        alone = stack.decide(stream.ballot.take(rows))
        assert (alone.labels == together.labels[rows]).all()
        assert np.allclose(alone.support, together.support[rows])


def test_beliefs_stay_sound_over_many_repeated_instances():
    rng = np.random.default_rng(5)
    stream = random_stream(rng, 50, 3, 2)
    stack = Stack(3, 2)
    for _ in range(200):
        run(stack, stream, [0, 50])
    belief = stack.tables()["stack"].rows(np.array([0]))[0][1:].reshape(5, 4)
    covariance = belief[:-1]
    assert np.allclose(covariance, covariance.T, rtol=1e-6)
    assert np.linalg.eigvalsh((covariance + covariance.T) / 2).min() > 0


@pytest.mark.parametrize(
    "options", [{"clip": 0.0}, {"prior_variance": 0.0}, {"prior_mean": np.inf}]
)
def test_impossible_settings_are_refused(options):
    with pytest.raises(LearnerError, match=next(iter(options))):
        Stack(3, 2, **options)
