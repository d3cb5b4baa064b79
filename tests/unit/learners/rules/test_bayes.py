import numpy as np
import pytest

from learners.local.features import unit_cube
from learners.rules.bayes import BayesianLogistic, posterior
from learners.rules.fourier import FourierFeatures
from tests.unit.learners.rules.samples import REALS, stream

PINNED = [
    0.7631935034329111,
    0.19170864898781378,
    -0.1478657622809116,
    0.1414511098906623,
    -0.6553080632860766,
    -0.11300421238937541,
    5.14793403945126,
    0.08706616736438141,
    2.0392199256963996,
]
"""Two times three frequencies and three phases of seed 5."""


def sigma(a):
    return 1.0 / (1.0 + np.exp(-a))


def reference(x, y, prior):
    """The update as it is written down, one label at a time; returns what it sent before each."""
    w, S = np.zeros(x.shape[1]), prior * np.eye(x.shape[1])
    sent = []
    for row, target in zip(x, y, strict=True):
        m, s = w @ row, S @ row
        v = row @ s
        sent.append(m / np.sqrt(1 + np.pi * v / 8))
        a = m
        for _ in range(4):
            a = a - (a - m - v * (target - sigma(a))) / (1 + v * sigma(a) * (1 - sigma(a)))
        p = sigma(a)
        k = p * (1 - p)
        w = w + (target - p) * s
        S = S - k / (1 + k * v) * np.outer(s, s)
    return np.array(sent), w, S


@pytest.mark.parametrize("fourier", [0, 6])
def test_equals_the_formulas(fourier):
    rows, truth = stream(np.random.default_rng(1), 120, outliers=0.0)
    rule = BayesianLogistic("b", REALS, 2, scaling="zscore", fourier=fourier, seed=3)
    sent = []
    for t in range(len(rows)):
        sent.append(rule.log_odds(rows[t : t + 1])[0, 1])
        rule.learn(rows[t : t + 1], truth[t : t + 1])
    pasts = np.array([rows[: t + 1] for t in range(len(rows))], dtype=object)
    spread = [np.where(past.std(axis=0) > 0, past.std(axis=0), np.inf) for past in pasts]
    z = [(past[-1] - past.mean(axis=0)) / s for past, s in zip(pasts, spread, strict=True)]
    z = np.clip(np.array(z, dtype=np.float64), -4.0, 4.0)
    extra = FourierFeatures(3, fourier, seed=3)
    waves = 0.5 * np.sqrt(3) * np.sqrt(2 / max(fourier, 1)) * np.cos(
        z @ extra.frequencies + extra.phases
    )  # fmt: skip
    x = np.column_stack([z, np.ones(len(z)), waves])
    wanted, w, S = reference(x, truth, prior=2.0)
    np.testing.assert_allclose(sent, wanted, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(rule.weights[0], w, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(rule.covariance[0], S, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("y", [0.0, 1.0])
@pytest.mark.parametrize("m", [-3.0, 0.0, 2.0])
@pytest.mark.parametrize("v", [0.0, 0.1, 1.0, 3.0])
def test_newton_finds_the_mode(m, v, y):
    p = posterior(m, v, y)
    a = m + v * (y - p)
    assert sigma(a) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("m", [-1e3, -10.0, 10.0, 1e3])
@pytest.mark.parametrize("v", [12.0, 1e3, 1e8])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_newton_never_leaves_the_probabilities(m, v, y):
    assert 0.0 <= posterior(m, v, y) <= 1.0


def test_a_long_stream_of_equal_columns_keeps_the_covariance_sound():
    generator = np.random.default_rng(2)
    rule = BayesianLogistic("b", unit_cube(5), 2, fourier=20)
    x = generator.normal(size=(12_000, 1)) * [1.0, 1.0, -2.0, 0.0, 1e-9]
    y = (x[:, 0] + generator.normal(size=len(x)) > 0).astype(np.int64)
    rule.learn(x, y)
    S = rule.covariance[0]
    assert (S == S.T).all()
    assert np.linalg.eigvalsh(S)[0] > 0.0
    assert ((rule.predict(x) == 1) == (x[:, 0] > 0)).mean() > 0.97


def test_partitions_multiply_their_beliefs():
    """With labels that tell nothing about order the combined belief is near that of one stream."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(4000, 3))
    y = (x @ [1.0, -1.0, 0.5] + generator.logistic(size=4000) > 0).astype(np.int64)
    whole, left, right = (BayesianLogistic("b", REALS, 2, scaling="zscore") for _ in range(3))
    whole.learn(x, y)
    left.learn(x[:1000], y[:1000])
    right.learn(x[1000:], y[1000:])
    merged = left.average([left.state(), right.state()], [1000, 3000])
    deviation = np.sqrt(np.diag(whole.covariance[0]))
    assert (abs(merged["weights"][0] - whole.weights[0]) < 1.5 * deviation).all()
    np.testing.assert_allclose(merged["covariance"], whole.covariance, atol=2e-4)
    assert (merged["covariance"] == merged["covariance"].transpose(0, 2, 1)).all()


class TestFourierFeatures:
    def test_the_draws_never_change(self):
        """Stored weights belong to these frequencies: another draw would void them."""
        waves = FourierFeatures(2, 3, seed=5)
        np.testing.assert_allclose(waves.frequencies.ravel(), PINNED[:6], rtol=1e-12)
        np.testing.assert_allclose(waves.phases, PINNED[6:], rtol=1e-12)

    def test_they_are_normal_and_uniform(self):
        waves = FourierFeatures(20, 500, seed=1, spread=0.1)
        assert abs(waves.frequencies.mean()) < 0.01
        assert waves.frequencies.var() == pytest.approx(0.1, rel=0.03)
        assert np.quantile(waves.phases / (2 * np.pi), [0.25, 0.75]) == pytest.approx(
            [0.25, 0.75], abs=0.06
        )

    def test_products_approach_the_gaussian_kernel(self):
        waves = FourierFeatures(3, 4000, seed=2, spread=0.5, amplitude=1.0)
        z = np.random.default_rng(4).normal(size=(20, 3))
        phi = waves(z) / np.sqrt(3.0)
        gaps = ((z[:, None] - z[None]) ** 2).sum(axis=2)
        np.testing.assert_allclose(phi @ phi.T, np.exp(-0.5 * 0.5 * gaps), atol=0.08)

    def test_none_at_all(self):
        assert FourierFeatures(3, 0, seed=0)(np.ones((4, 3))).shape == (4, 0)
