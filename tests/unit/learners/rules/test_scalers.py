import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learners.errors import LearnerError
from learners.rules.expanded_columns import Columns
from learners.rules.ranks import RankSketch
from learners.rules.running_variance import Moments
from learners.rules.scalers import SCALERS, CentredRanks, make_scaler
from tests.strategies import generators
from tests.unit.learners.rules.samples import MIXED, REALS, same, stream

every_scaler = pytest.mark.parametrize("scaling", SCALERS)


@every_scaler
@given(generators, st.sampled_from([REALS, MIXED]))
def test_a_row_is_seen_as_if_it_had_just_been_added(scaling, generator, space):
    columns = Columns(space)
    raw = columns.raw(stream(generator, 40, space)[0])
    scaler = make_scaler(scaling, columns)
    for t in range(len(raw)):
        before = scaler.state()
        scaled = scaler.look(raw[t : t + 1])
        assert same(before, scaler.state())
        assert scaled.tobytes() == scaler.learn(raw[t : t + 1]).tobytes()


@every_scaler
def test_categories_pass_unscaled(scaling):
    columns = Columns(MIXED)
    raw = columns.raw(stream(np.random.default_rng(1), 50, MIXED)[0])
    scaled = make_scaler(scaling, columns).learn(raw)
    assert columns.real.tolist() == [True, False, False, True, False, False, False]
    assert (scaled[:, ~columns.real] == raw[:, ~columns.real]).all()
    assert (scaled[1:, columns.real] != raw[1:, columns.real]).any()


def test_z_scores_equal_the_textbook():
    x = np.random.default_rng(3).normal(50.0, 3.0, size=(200, 3))
    x[5] += 1000.0
    z = make_scaler("zscore", Columns(REALS)).learn(x)
    log = make_scaler("log", Columns(REALS)).learn(x)
    for t in (1, 5, 6, 199):
        past = x[: t + 1]
        wanted = (x[t] - past.mean(axis=0)) / past.std(axis=0)
        np.testing.assert_allclose(z[t], np.clip(wanted, -4.0, 4.0), rtol=1e-9)
        np.testing.assert_allclose(log[t], np.sign(wanted) * np.log1p(abs(wanted)), rtol=1e-9)
    assert (z[0] == 0.0).all()


def test_nothing_varies():
    x = np.full((30, 3), 0.1)
    for scaling in SCALERS:
        assert (make_scaler(scaling, Columns(REALS)).learn(x) == 0.0).all()


class TestMoments:
    @pytest.mark.parametrize("first", [0.0, 1e6, 1e9])
    def test_a_far_first_row_costs_no_precision(self, first):
        x = np.random.default_rng(4).normal(size=(20_000, 1))
        x[0] = first
        moments = Moments(1)
        spread = moments.learn(x)
        np.testing.assert_allclose(spread.variance[-1], x.var(axis=0), rtol=1e-9)
        np.testing.assert_allclose(spread.offset[-1], x[-1] - x.mean(axis=0), rtol=1e-9)

    def test_merging_equals_seeing_all(self):
        x = np.random.default_rng(5).normal(100.0, size=(300, 2))
        parts = [Moments(2) for _ in range(4)]
        for part, rows in zip(parts, (x[:10], x[10:200], x[200:]), strict=False):
            part.learn(rows)
        merged = Moments(2)
        merged.restore(Moments.merged([parts[3].state(), *(p.state() for p in parts[:3])]))
        assert merged.count == 300
        spread = merged.look(x[:1])
        whole = Moments(2)
        whole.learn(x)
        np.testing.assert_allclose(spread.variance, whole.look(x[:1]).variance, rtol=1e-9)
        np.testing.assert_allclose(spread.offset, whole.look(x[:1]).offset, rtol=1e-9)
        assert Moments.merged([Moments(2).state()] * 2)["count"] == 0


def mid_ranks(past, x):
    """The definition: rows below and half of the equal ones, x itself among them."""
    below, equal = (past < x).sum(axis=0), (past == x).sum(axis=0) + 1
    return (below + equal / 2) / (len(past) + 1)


class TestRankSketch:
    @given(generators, st.integers(1, 120))
    def test_exact_below_its_capacity(self, generator, n):
        x = generator.integers(-4, 5, size=(n, 2)).astype(np.float64)
        sketch = RankSketch(2, capacity=128)
        learned = sketch.learn(x)
        for t in range(n):
            np.testing.assert_allclose(learned[t], mid_ranks(x[:t], x[t]), rtol=1e-14)
        fresh = generator.integers(-5, 6, size=(12, 2)).astype(np.float64)
        wanted = [mid_ranks(x, row) for row in fresh]
        np.testing.assert_allclose(sketch.look(fresh), wanted, rtol=1e-14)
        np.testing.assert_allclose(sketch.look(fresh[:2]), wanted[:2], rtol=1e-14)

    @pytest.mark.parametrize("shape", ["random", "rising", "falling", "zigzag", "few values"])
    def test_error_stays_under_its_bound_in_little_memory(self, shape):
        n, capacity = 20_000, 64
        x = np.random.default_rng(6).normal(size=n)
        x = {
            "random": x,
            "rising": np.sort(x),
            "falling": np.sort(x)[::-1],
            "zigzag": np.where(np.arange(n) % 2, np.sort(x), np.sort(x)[::-1]),
            "few values": np.round(x),
        }[shape]
        sketch = RankSketch(1, capacity)
        sketch.learn(x[:, None])
        levels = np.ceil(np.log2(n / capacity))
        queries = np.linspace(-4.0, 4.0, 161)
        wanted = np.array([mid_ranks(x, q) for q in queries])
        worst = abs(sketch.look(queries[:, None])[:, 0] - wanted).max()
        assert worst <= levels / capacity
        assert worst <= 0.05, "far below the bound in practice"
        assert sketch.count == n
        assert sketch.state()["values"].nbytes <= 8 * capacity * (levels + 1)

    def test_merging(self):
        x = np.random.default_rng(7).normal(size=(5000, 2))
        parts = []
        for cut in (x[:37], x[37:3000], x[3000:], x[:0]):
            part = RankSketch(2, capacity=64)
            part.learn(cut)
            parts.append(part.state())
        sketch = RankSketch(2, capacity=64)
        sketch.restore(sketch.merged(parts))
        assert sketch.count == 5000
        queries = np.random.default_rng(8).normal(size=(50, 2))
        wanted = np.array([mid_ranks(x, q) for q in queries])
        assert abs(sketch.look(queries) - wanted).max() <= 7 / 64
        assert max(sketch.state()["sizes"]) < 64

    @pytest.mark.parametrize("capacity", [0, 1, 7])
    def test_capacity_must_be_even(self, capacity):
        with pytest.raises(LearnerError, match="even capacity"):
            RankSketch(1, capacity)

    def test_a_state_of_another_width_is_refused(self):
        state = RankSketch(3, 8).state()
        with pytest.raises(LearnerError, match="does not fit its settings: values"):
            RankSketch(2, 8).restore(state)


def test_centred_ranks_are_exact_multiples():
    ranks = CentredRanks(Columns(REALS)).learn(np.random.default_rng(9).normal(size=(500, 3)))
    assert (ranks * 1024 == np.rint(ranks * 1024)).all()
    assert abs(ranks).max() <= 1.0
    standard = make_scaler("rank", Columns(REALS)).learn(
        np.random.default_rng(9).normal(size=(500, 3))
    )
    np.testing.assert_allclose(standard[100:].std(axis=0), 1.0, atol=0.1)
