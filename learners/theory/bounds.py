"""The paper's guarantees, one pure function each.

Symbols: `T` horizon, `d` real features of the local learner (LL), `m` parts per axis, `cubes` the
number of cells (`m^d` in the paper; with categories, the product over all features), `rules` the
paper's |F_i|, `L` and `alpha` of the Hölder condition (Assumption 1), `M` the number of LLs.
Logarithms are natural. A regret bound above `T` is vacuous: no algorithm can lose more than `T`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, log, sqrt

from learners.errors import LearnerError


def log_term(T: float, rules: int, cubes: float, delta: float | None = None) -> float:
    """`1 + 2 ln(2 |F| m^d T^1.5)`: the factor shared by the index, Theorem 1 and Corollary 1.

    In the paper a mean may leave its interval with probability 1/T. With another probability
    `delta`, T^1.5 becomes T^0.5 / delta.
    """
    unlikely = log(T) if delta is None else -log(delta)
    return 1.0 + 2.0 * (log(2.0 * rules) + log(cubes) + 0.5 * log(T) + unlikely)


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
) -> float:
    """Theorem 1: regret of an LL against its local oracle, for any `m`.

    `1 + 2 L d^(alpha/2) m^(-alpha) T + |F| m^d + 2 A_m sqrt(|F| m^d T)`.
    """
    cells = rules * cubes
    learning = cells + 2.0 * width_factor(T, rules, cubes) * sqrt(cells * T)
    return 1.0 + partition_term(L, alpha, d, m) * T + learning


def memory_bounded_limit(L: float, alpha: float, d: int, max_cuts: int) -> float:
    """Remark 1: limit of the average regret when `m` may not exceed `M_i`."""
    return partition_term(L, alpha, d, max_cuts)


def confidence_epsilon(
    trials: float,
    *,
    T: float,
    d: int,
    m: int,
    cubes: float,
    rules: int,
    L: float,
    alpha: float,
    delta: float | None = None,
) -> float:
    """Corollary 1: how far the chosen rule can be from the best one, with probability 1 - 1/T.

    `sqrt((8/N) (1 + 2 ln(2 |F| m^d T^1.5))) + 2 L d^(alpha/2) m^(-alpha)`, with the `m` in use: the
    paper has `T^(-alpha/(2 alpha+d))` in place of `m^(-alpha)`, which is the same for its own `m`.
    That is twice the index's radius, which is made for 1/T. With `delta`, at least 1/T, one of the
    two is the narrower radius that all means keep with probability 1 - delta.
    """
    learned = sqrt(2.0 / trials) * _radii(T, rules, cubes, delta) if trials > 0 else inf
    return learned + partition_term(L, alpha, d, m)


def _radii(T: float, rules: int, cubes: float, delta: float | None) -> float:
    return sqrt(log_term(T, rules, cubes)) + sqrt(log_term(T, rules, cubes, delta))


@dataclass(frozen=True, slots=True)
class PatientsNeeded:
    """Answer of the (eps, delta) planner.

    trials      how often a rule must have been tried in a cube until Corollary 1 gives eps for it
    decisions   at most so many decisions are ever made below this confidence, with labels on time:
                each of them is one of the first `trials` of its rule in its cube
    floor       the partition term alone: eps below it cannot be reached; then the counts are None,
                as they are for delta below 1/T
    cuts        how many parts per axis would be needed to come below eps
    """

    trials: int | None
    decisions: int | None
    floor: float
    cuts: int


def patients_needed(
    eps: float,
    delta: float,
    *,
    T: float,
    d: int,
    m: int,
    cubes: float,
    rules: int,
    L: float,
    alpha: float,
) -> PatientsNeeded:
    """Smallest count `N*` from which the error is at most eps, with probability 1 - delta.

    Corollary 1 solved for N, for T decisions. The index in use is made for 1/T. With probability
    1 - delta all means lie within the radius made for delta, which is narrower; then the chosen
    rule, which has the largest index, falls short of the best by at most one radius of each kind,
    and the partition term. Below 1/T the index itself is too narrow.
    """
    if not (eps > 0 and 0 < delta < 1):
        raise LearnerError("eps must be above 0 and delta between 0 and 1")
    floor = partition_term(L, alpha, d, m)
    cuts = max(1, math.floor(math.pow(partition_term(L, alpha, d, 1) / eps, 1.0 / alpha)) + 1)
    if eps <= floor or delta * T < 1.0:
        return PatientsNeeded(None, None, floor, cuts)
    trials = ceil(2.0 * _radii(T, rules, cubes, delta) ** 2 / (eps - floor) ** 2)
    return PatientsNeeded(trials, ceil(trials * rules * cubes), floor, cuts)


def hedge_regret(T: float, M: int) -> float:
    """Theorem 2: pseudo-regret of Anytime Hedge, labels on time: `2 sqrt(T ln M)`."""
    return 2.0 * sqrt(T * log(M))


def ensemble_regret(local: Sequence[float], ensemble: float) -> float:
    """Theorem 3: the EL against the best local oracle, Theorem 1 of that LL + the EL's own.

    The EL's own is `2 sqrt(T ln M)`. Labels must be on time, and every LL heard.

    Which LL has the best oracle is not known, so that the largest of their bounds counts. With
    contexts the EL's own part is that of Theorem 4.
    """
    return max(local) + ensemble


def contextual_hedge_regret(T: float, M: int, cubes: float) -> float:
    """Theorem 4: contextual pseudo-regret of Contextual Hedge with labels on time.

    `2 sqrt(T m_EL^d_EL ln M)`; late labels make it larger.
    """
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
