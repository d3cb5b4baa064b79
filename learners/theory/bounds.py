"""The paper's guarantees, one pure function each.

Symbols: `T` horizon, `d` real features of the local learner (LL), `m` parts per axis, `cubes` the
number of cells (`m^d` in the paper; with categories, the product over all features), `rules` the
paper's |F_i|, `L` and `alpha` of the Hölder condition (Assumption 1), `M` the number of LLs.
Logarithms are natural. A regret bound above `T` is vacuous: no algorithm can lose more than `T`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log, sqrt

from learners.errors import LearnerError


def log_term(T: float, rules: int, cubes: float) -> float:
    """`1 + 2 ln(2 |F| m^d T^1.5)`: the factor shared by the index, Theorem 1 and Corollary 1."""
    return 1.0 + 2.0 * (log(2.0 * rules) + log(cubes) + 1.5 * log(T))


def partition_term(L: float, alpha: float, d: int, m: float) -> float:
    """`2 L d^(alpha/2) m^(-alpha)`: what treating a whole cube alike can cost per instance.

    Theorem 1 has it times T; Remark 1 has it as the limit of the average regret when memory bounds
    `m` by `M_i`.
    """
    return 2.0 * L * math.pow(d, alpha / 2.0) * math.pow(m, -alpha)


def width_factor(T: float, rules: int, cubes: float) -> float:
    """`A_m = 2 sqrt(2 (1 + 2 ln(2 |F| m^d T^1.5)))` of Theorem 1."""
    return 2.0 * sqrt(2.0 * log_term(T, rules, cubes))


def local_regret(
    T: float,
    *,
    d: int,
    m: int,
    cubes: float,
    rules: int,
    L: float,
    alpha: float,
    so_far: float | None = None,
) -> float:
    """Theorem 1: regret of an LL against its local oracle, for any `m`.

    `1 + 2 L d^(alpha/2) m^(-alpha) T + |F| m^d + 2 A_m sqrt(|F| m^d T)`.

    After `so_far` of the T instances the two terms that grow with time are as long as it was: the
    proof sums over the instances there were, and T stays in A_m, whose index was made for it.
    """
    cells, t = rules * cubes, T if so_far is None else so_far
    learning = cells + 2.0 * width_factor(T, rules, cubes) * sqrt(cells * t)
    return 1.0 + partition_term(L, alpha, d, m) * t + learning


def memory_bounded_limit(L: float, alpha: float, d: int, max_cuts: int) -> float:
    """Remark 1: limit of the average regret when `m` may not exceed `M_i`."""
    return partition_term(L, alpha, d, max_cuts)


def confidence_epsilon(
    trials: float, *, T: float, d: int, cubes: float, rules: int, L: float, alpha: float
) -> float:
    """Corollary 1: how far the chosen rule can be from the best one, with probability 1 - 1/T.

    `sqrt((8/N) (1 + 2 ln(2 |F| m^d T^1.5))) + 2 L d^(alpha/2) T^(-alpha/(2 alpha+d))`.
    """
    learned = sqrt(8.0 / trials * log_term(T, rules, cubes)) if trials > 0 else inf
    return learned + epsilon_floor(T, d=d, L=L, alpha=alpha)


def epsilon_floor(T: float, *, d: int, L: float, alpha: float) -> float:
    """Second term of Corollary 1: what remains however many patients a cube has seen."""
    return 2.0 * L * math.pow(d, alpha / 2.0) * math.pow(T, -alpha / (2.0 * alpha + d))


@dataclass(frozen=True, slots=True)
class PatientsNeeded:
    """Answer of the (eps, delta) planner.

    per_cube    trials of the chosen rule in one cube from which Corollary 1 gives eps
    total       patients after which every cube has that many trials if they spread evenly over
                all cubes and rules; real streams visit few cubes, so most cubes get there sooner
    floor       the partition term alone: eps below it cannot be reached; then the counts are None
    horizon     the T that the answer is for; the promise holds with probability 1 - 1/T
    """

    per_cube: int | None
    total: int | None
    floor: float
    horizon: float


def patients_needed(
    eps: float,
    delta: float,
    *,
    T: float,
    d: int,
    cubes: float,
    rules: int,
    L: float,
    alpha: float,
) -> PatientsNeeded:
    """Smallest patient count `N*` from which the error is at most eps, with probability 1 - delta.

    Corollary 1 solved for N. It promises 1 - 1/T, so a smaller `delta` needs a longer horizon:
    the answer is for `max(T, 1/delta)`.
    """
    if not (eps > 0 and 0 < delta < 1):
        raise LearnerError("eps must be above 0 and delta between 0 and 1")
    horizon = max(T, 1.0 / delta)
    floor = epsilon_floor(horizon, d=d, L=L, alpha=alpha)
    if eps <= floor:
        return PatientsNeeded(None, None, floor, horizon)
    per_cube = ceil(8.0 * log_term(horizon, rules, cubes) / (eps - floor) ** 2)
    return PatientsNeeded(per_cube, ceil(per_cube * rules * cubes), floor, horizon)


def hedge_regret(T: float, M: int) -> float:
    """Theorem 2: pseudo-regret of Anytime Hedge against the best LL, `2 sqrt(T ln M)`."""
    return 2.0 * sqrt(T * log(M))


def ensemble_regret(T: float, M: int, best_local: float) -> float:
    """Theorem 3: the EL against the best local oracle, Theorem 1 of that LL + `2 sqrt(T ln M)`."""
    return best_local + hedge_regret(T, M)


def contextual_hedge_regret(T: float, M: int, cubes: float) -> float:
    """Theorem 4: contextual pseudo-regret of Contextual Hedge, `2 sqrt(T m_EL^d_EL ln M)`."""
    return 2.0 * sqrt(T * cubes * log(M))


def doubling_regret(first: int, T: int, bound: Callable[[int], float]) -> float:
    """Doubling trick: the sum of a bound over the phases `first, 2 first, 4 first, …` that T meets.

    The last phase counts with its whole length, because its algorithm is tuned to it.
    """
    total, start, length = 0.0, 0, first
    while start < T:
        total += bound(length)
        start, length = start + length, 2 * length
    return total


def is_vacuous(bound: float, T: float) -> bool:
    """Tell whether a regret bound says nothing, because regret never exceeds T."""
    return bound >= T
