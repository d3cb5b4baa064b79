"""Which of the paper's regret bounds hold for a learner or a fusion rule as it is set up.

A local learner (LL): Theorem 1, for the paper's own IUP (c = 1, no weights, no back-off) over rules
that do not learn; phase by phase under the doubling trick. The ensemble learner (EL): Theorem 2, or
Theorem 4 with contexts, for fusion rules whose weights are Hedge's at the paper's rate. All of them
bound expectations and assume that labels come at once; late labels make them approximate.
"""

from math import inf

from learners.fusion.active import Active
from learners.fusion.base import Fusion
from learners.fusion.committee import Committee
from learners.fusion.confidence import HedgeOdds
from learners.fusion.fnr_control import Controlled
from learners.fusion.hedge import Hedge
from learners.local.learner import LocalLearner
from learners.local.partition import Partition, cuts_for
from learners.local.phases import Doubling
from learners.theory.bounds import contextual_hedge_regret, doubling_regret, local_regret


def partition_for(learner: LocalLearner, horizon: float) -> Partition:
    """Return the partition that an LL uses when it is set up for a horizon."""
    config = learner.iup.config
    real = int((learner.space.category_counts == 0).sum())
    m = config.cuts or cuts_for(max(1, int(horizon)), config.alpha, real, config.max_cuts)
    return Partition(learner.space, m)


def theorem_1(learner: LocalLearner, horizon: float, so_far: float | None = None) -> float:
    """Bound an LL's regret over one horizon, or after `so_far` of its instances."""
    partition = partition_for(learner, horizon)
    return local_regret(
        horizon,
        d=partition.d,
        m=partition.m,
        cubes=partition.size,
        rules=len(learner.rules),
        L=learner.lipschitz,
        alpha=learner.iup.config.alpha,
        so_far=so_far,
    )


def planned_bound(learner: LocalLearner, horizon: float) -> float:
    """Bound an LL's regret after `horizon` instances, were it set up for that many.

    An LL that doubles keeps its phases; the last of them counts as a whole. This is the theorem's
    figure whether or not it covers the LL: ask `uncovered`.
    """
    clock = learner.iup.config.clock
    if not isinstance(clock, Doubling):
        return theorem_1(learner, horizon)
    return doubling_regret(clock.first, int(horizon), lambda length: theorem_1(learner, length))


def bound_so_far(learner: LocalLearner, labelled: int) -> float | None:
    """Bound an LL's regret after `labelled` instances; None where no theorem does."""
    clock = learner.iup.config.clock
    horizon = inf if isinstance(clock, Doubling) else clock.length(1)
    if uncovered(learner) or labelled > horizon:
        return None
    total, phase, left = 0.0, 1, labelled
    while left > 0:
        length = clock.length(phase)
        total += theorem_1(learner, length, min(left, length))
        phase, left = phase + 1, left - length
    return total


def uncovered(learner: LocalLearner) -> list[str]:
    """Say why the theorems do not cover an LL; nothing if they do."""
    config = learner.iup.config
    reasons = {
        f"exploration is {config.exploration:g}; the theorems need 1": config.exploration != 1.0,
        "back-off is on; the theorems are without it": bool(config.backoff),
        "rules have weights; the theorems are for equal ones": config.weights is not None,
        "a rule learns; the theorems are for fixed rules": learner.learns,
    }
    return [reason for reason, applies in reasons.items() if applies]


def ensemble_bound(fusion: Fusion, labelled: int, cubes: int = 1) -> float | None:
    """Bound the EL's regret against the best expert in each of the context cubes that were visited.

    None where no theorem does. The experts are those that the weights are for: LLs, or the members
    of a committee.
    """
    while isinstance(fusion, Active | Controlled):
        fusion = fusion.inner
    if not isinstance(fusion, Hedge | HedgeOdds | Committee) or not fusion.weights.plain:
        return None
    return contextual_hedge_regret(labelled, fusion.weights.experts, cubes)
