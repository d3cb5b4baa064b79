"""The regret bounds that theory gives for an ensemble as configured, None where it gives none.

The ensemble learner: Theorem 2, or 4 with contexts, for modes whose weights are Hedge's with the
paper's rate. A local learner: Theorem 1, for the paper's own IUP (c = 1, rules that do not learn,
no weights, no back-off), phase by phase under the doubling trick. Both assume that labels come at
once; late ones make them approximate. They bound expectations.
"""

from collections.abc import Callable

from learners.local.learner import LocalLearner
from learners.local.phases import Horizon
from learners.theory.bounds import contextual_hedge_regret, hedge_regret, local_regret
from settings.building import local_learner
from settings.model import Settings

_HEDGE = ("ah", "wm", "ch", "ch-vote", "odds", "committee")
"""Modes whose weights are Hedge's."""


def hedge_bound(settings: Settings, labelled: int, experts: int, cubes: int) -> float | None:
    """Return the bound on regret against the best expert (in each of the context cubes)."""
    ensemble = settings.ensemble
    plain = ensemble.eta_scale in (None, 1.0) and "rate" not in ensemble.options
    if ensemble.mode not in _HEDGE or not plain:
        return None
    if ensemble.context is None:
        return float(hedge_regret(labelled, experts))
    return float(contextual_hedge_regret(labelled, experts, cubes))


def local_bound(settings: Settings, name: str) -> Callable[[int], float | None]:
    """Return a local learner's regret bound as a function of its labelled instances."""
    learner = local_learner(settings, name)
    config = learner.iup.config
    plain = config.exploration == 1.0 and not config.weights and not config.backoff
    if not plain or learner.learns:
        return lambda _labelled: None
    return lambda labelled: _sum_of_phases(learner, labelled)


def _sum_of_phases(learner: LocalLearner, labelled: int) -> float | None:
    clock = learner.iup.config.clock
    if isinstance(clock, Horizon) and labelled > clock.T:
        return None  # beyond the horizon that its index was built for
    total, phase, left = 0.0, 1, labelled
    while left > 0:
        length = clock.length(phase)
        total += _phase_bound(learner, phase, min(left, length))
        phase, left = phase + 1, left - length
    return total


def _phase_bound(learner: LocalLearner, phase: int, labelled: int) -> float:
    current = learner.iup.phase(phase)
    return local_regret(
        current.horizon,
        d=current.partition.d,
        m=current.partition.m,
        cubes=current.partition.size,
        rules=len(learner.rules),
        L=learner.lipschitz,
        alpha=learner.iup.config.alpha,
        so_far=labelled,
    )
