"""Rounded values, and what is kept of them."""

import numpy as np
import pytest

from learners.local.features import FeatureSpace, Real
from learners.local.scaling import Online, ZLogistic
from learners.rules.grid import Grid
from learners.rules.registry import make_rule

SCALES = {"fixed": ZLogistic(mean=10.0, std=2.0), "online": Online()}


@pytest.mark.parametrize("scaling", SCALES.values(), ids=SCALES)
def test_there_is_one_zero_only(scaling):
    """Values just below the mean are rounded to it, and so are those just above."""
    center = getattr(scaling, "mean", 0.0)
    close = np.array([[center - 1e-9], [center], [center + 1e-9], [-0.0]])
    rounded = Grid(FeatureSpace((Real("x", scaling),))).rounded(close)
    assert not np.signbit(rounded[rounded == 0.0]).any()


@pytest.mark.parametrize("scaling", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("preset", ["kdi", "mixed", "additive", "joint"])
@pytest.mark.parametrize("restart", [3, 9, 300, 571])
def test_a_restart_among_many_equal_values_changes_no_bit(preset, restart, scaling):
    space = FeatureSpace(tuple(Real(name, scaling) for name in "ab"))
    rng = np.random.default_rng(1)
    rows = 10.0 + 0.02 * rng.standard_normal((700, 2))
    rows[::3] = rng.integers(-1, 2, (len(rows[::3]), 2)) * 0.0
    truth = rng.integers(0, 2, len(rows))
    whole, first, second = (
        make_rule({"kind": "committee", "preset": preset, "name": "c"}, space, ("no", "yes"))
        for _ in range(3)
    )
    whole.learn(rows, truth)
    first.learn(rows[:restart], truth[:restart])
    second.restore(first.state())
    second.learn(rows[restart:], truth[restart:])
    expected = whole.state()
    assert {name: array.tobytes() for name, array in second.state().items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
