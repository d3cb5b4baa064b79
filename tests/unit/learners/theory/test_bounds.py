from math import log, sqrt

import pytest

from learners.errors import LearnerError
from learners.theory import bounds

WDBC = {"d": 10, "m": 2, "cubes": 2**10, "rules": 2, "L": 1.0, "alpha": 1.65}


def test_theorem_1_at_the_papers_setting_is_vacuous():
    """Worked by hand: 1 + 2 10^0.825 2^-1.65 T + 2048 + 2 A sqrt(2048 T), T = 10^4."""
    T = 10_000
    A = 2 * sqrt(2 * (1 + 2 * log(2 * 2 * 1024 * 1e6)))
    expected = 1 + 2 * 10**0.825 * 2**-1.65 * T + 2048 + 2 * A * sqrt(2048 * T)
    assert bounds.local_regret(T, **WDBC) == pytest.approx(expected)
    assert bounds.is_vacuous(bounds.local_regret(T, **WDBC), T)


def test_theorem_2_gives_the_figure_measured_against():
    assert bounds.hedge_regret(10_000, 3) == pytest.approx(209.6, abs=0.1)
    assert bounds.hedge_regret(10_000, 1) == 0.0


def test_theorem_3_adds_theorem_2_to_the_best_local_bound():
    whole = bounds.hedge_regret(10_000, 3)
    assert bounds.ensemble_regret([500.0, 700.0], whole) == 700.0 + whole


def test_theorem_4_is_theorem_2_where_there_is_one_cube():
    assert bounds.contextual_hedge_regret(400, 5, 1) == bounds.hedge_regret(400, 5)
    assert bounds.contextual_hedge_regret(400, 5, 16) == 4 * bounds.hedge_regret(400, 5)


def test_remark_1_is_the_slope_that_theorem_1_keeps():
    args = {"d": 4, "m": 3, "cubes": 81, "rules": 2, "L": 2.0, "alpha": 1.0}
    T = 1e14
    assert bounds.local_regret(T, **args) / T == pytest.approx(
        bounds.memory_bounded_limit(2.0, 1.0, 4, 3), rel=1e-3
    )


PLANNED = {"T": 5000, "d": 2, "m": 4, "cubes": 16, "rules": 2, "L": 0.5, "alpha": 1.0}


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1 / PLANNED["T"]])
@pytest.mark.parametrize("margin", [0.05, 0.2, 0.5])
def test_the_planner_inverts_corollary_1(delta, margin):
    eps = bounds.partition_term(0.5, 1.0, 2, 4) + margin
    plan = bounds.patients_needed(eps, delta, **PLANNED)
    assert plan.trials is not None
    assert bounds.confidence_epsilon(plan.trials, delta=delta, **PLANNED) <= eps
    assert bounds.confidence_epsilon(plan.trials - 1, delta=delta, **PLANNED) > eps
    assert plan.decisions == plan.trials * 2 * 16


def test_the_papers_index_is_tuned_to_the_horizon():
    tuned = bounds.confidence_epsilon(100, delta=1 / 5000, **PLANNED)
    assert bounds.confidence_epsilon(100, **PLANNED) == pytest.approx(tuned)


def test_the_planner_says_when_the_partition_alone_is_too_coarse():
    coarse = bounds.patients_needed(0.1, 0.05, **PLANNED | {"d": 10, "m": 2, "cubes": 1024})
    assert coarse.trials is None
    assert coarse.decisions is None
    assert coarse.floor > 0.1
    # The cuts it asks for are the fewest that would do.
    assert bounds.partition_term(0.5, 1.0, 10, coarse.cuts) < 0.1
    assert bounds.partition_term(0.5, 1.0, 10, coarse.cuts - 1) >= 0.1


@pytest.mark.parametrize(("eps", "delta"), [(0, 0.1), (-1, 0.1), (0.1, 0), (0.1, 1)])
def test_the_planner_refuses_what_is_no_promise(eps, delta):
    with pytest.raises(LearnerError, match="eps must be above 0"):
        bounds.patients_needed(eps, delta, **PLANNED)


def test_doubling_sums_its_phases():
    assert bounds.doubling_regret(100, 300, float) == 100 + 200
    assert bounds.doubling_regret(100, 301, float) == 100 + 200 + 400
