"""Theorem 1 and Corollary 1 on problems whose accuracies are known, and the interval's coverage."""

import numpy as np
import pytest

from learners.local.features import unit_cube
from learners.local.iup import Iup, IupConfig
from learners.local.learner import Labelled, LocalLearner
from learners.local.phases import Horizon
from learners.rules.constant import Constant
from learners.theory.bounds import confidence_epsilon, local_regret
from learners.theory.intervals import accuracy_interval
from learners.theory.promises import confidence

T = 30_000
RULES = 2


def wide_gap(x):
    """Hölder with alpha = 1, L = 0.1: one rule is far better, so that bad choices are costly."""
    return np.stack([0.95 - 0.1 * x, 0.05 + 0.1 * x])


def crossing(x):
    """Hölder with alpha = 1, L = 0.5: which rule is better depends on the instance."""
    return np.stack([0.3 + 0.5 * x, 0.8 - 0.5 * x])


PROBLEMS = {"wide gap": (wide_gap, 0.1, 2), "crossing": (crossing, 0.5, 4)}
ARRIVALS = {
    "uniform": lambda rng: rng.random(T),
    "sorted": lambda rng: np.sort(rng.random(T)),
    "one spot": lambda rng: np.full(T, 0.3),
}


def play(accuracy, x, m, rng, weights=None):
    """Run IUP one instance at a time; return the chosen rules and their trials before choosing."""
    iup = Iup(unit_cube(1), IupConfig(rules=RULES, clock=Horizon(T), cuts=m, weights=weights))
    correct = rng.random((T, RULES)) < accuracy(x).T
    seeds = rng.integers(0, 2**64, T, dtype=np.uint64)
    rules, trials = np.empty(T, np.int64), np.empty(T, np.int64)
    for t in range(T):
        choices = iup.decide(x[t : t + 1, None], seeds[t : t + 1])
        iup.learn(choices.phase, choices.cubes, choices.rules, correct[t : t + 1])
        rules[t], trials[t] = choices.rules[0], choices.trials[0]
    return rules, trials


def shortfall(accuracy, x, rules):
    """Return how far each chosen rule is from the local oracle's."""
    pi = accuracy(x)
    return pi.max(axis=0) - pi[rules, np.arange(T)]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_regret_and_confidence_stay_under_their_bounds(problem, arrival):
    accuracy, L, m = PROBLEMS[problem]
    rng = np.random.default_rng(len(problem) * 100 + len(arrival))
    x = ARRIVALS[arrival](rng)
    rules, trials = play(accuracy, x, m, rng)
    lost = shortfall(accuracy, x, rules)
    bound = local_regret(T, d=1, m=m, cubes=m, rules=RULES, L=L, alpha=1.0)
    assert bound < T, "the bound must say something"
    assert lost.sum() <= bound

    same = {"T": T, "d": 1, "m": m, "cubes": m, "rules": RULES, "L": L, "alpha": 1.0}
    eps = np.array([confidence_epsilon(n, **same) for n in trials])
    assert eps.min() < 0.9, "the promise must say something"
    assert (lost > eps).mean() <= 1 / T


def test_the_regret_bound_is_one_that_a_bad_learner_breaks():
    accuracy, L, m = PROBLEMS["wide gap"]
    rng = np.random.default_rng(5)
    x = rng.random(T)
    worst = accuracy(x).argmin(axis=0)
    bound = local_regret(T, d=1, m=m, cubes=m, rules=RULES, L=L, alpha=1.0)
    assert shortfall(accuracy, x, worst).sum() > bound


def running_counts(p, runs, steps, rng):
    return np.cumsum(rng.random((runs, steps)) < p, axis=1)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_the_accuracy_interval_holds_at_all_times_at_once(p):
    runs, steps = 400, 1000
    successes = running_counts(p, runs, steps, np.random.default_rng(int(p * 100)))
    trials = np.broadcast_to(np.arange(1, steps + 1), successes.shape)
    low, high = accuracy_interval(trials.ravel(), successes.ravel())
    ever_outside = ((low > p) | (high < p)).reshape(runs, steps).any(axis=1).sum()
    # A binomial with 5 % would exceed this once in ten thousand tests.
    assert ever_outside <= runs * 0.05 + 3.8 * np.sqrt(runs * 0.05 * 0.95)
    # It is tight enough to be of use.
    assert (high - low).reshape(runs, steps)[:, -1].mean() < 0.12


def test_an_interval_for_one_sample_size_would_not_hold_at_all_times():
    """Why the interval is not Wilson's: looked at after every label, that one fails too often."""
    p, runs, steps = 0.9, 400, 1000
    successes = running_counts(p, runs, steps, np.random.default_rng(3))
    n = np.arange(1, steps + 1)
    mean = successes / n
    z2 = 1.96**2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(mean * (1 - mean) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    assert (np.abs(centre - p) > half).any(axis=1).mean() > 0.15


def test_a_learner_reports_the_corollarys_epsilon():
    config = IupConfig(rules=2, clock=Horizon(10_000), alpha=1.65)
    rules = [Constant(0, classes=2), Constant(1, classes=2)]
    learner = LocalLearner(unit_cube(10), rules, config, classes=2, lipschitz=0.5)
    x = np.full((50, 10), 0.25)
    seeds = np.arange(50, dtype=np.uint64)
    predictions = learner.decide(x, seeds)
    assert np.isinf(confidence(learner, predictions.choices).epsilon).all()
    learner.learn(Labelled.of(predictions, truth=np.zeros(50, np.int64)))
    after = learner.decide(x[:1], seeds[:1])
    n = int(after.choices.trials[0])
    same = {"T": 10_000, "d": 10, "m": 2, "cubes": 2**10, "rules": 2, "L": 0.5, "alpha": 1.65}
    expected = confidence_epsilon(n, **same)
    assert confidence(learner, after.choices).epsilon[0] == pytest.approx(expected)
    assert confidence(learner, after.choices).accuracy[0] == after.choices.successes[0] / n
