"""What can be promised with a settings file: the numbers and sentences behind `hb plan`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from learners.arrays.tables import DENSE_LIMIT, SparseTable
from learners.fusion.base import Fusion
from learners.local.learner import LocalLearner
from learners.local.partition import Partition
from learners.theory import bounds
from learners.theory.promises import (
    average_limit,
    labels_to_know_a_share,
    miss_rate_gaps,
    oracle_bound,
    partition_for,
    planned_confidence,
    planned_local_bound,
    planned_regret_bound,
    votes,
    why_no_local_bound,
    why_no_regret_bound,
)
from settings.building import fusion, local_learner
from settings.model import Settings

CURVE_POINTS = 61
DECADES = 12
DELAYS = (0, 10, 100, 1000)
ERROR_RATES = (0.02, 0.05, 0.1, 0.5)
WITHIN = 0.01
PATIENTS = 2000


@dataclass(frozen=True)
class LearnerPlan:
    """What can be promised of one local learner; figures that nothing promises are None."""

    learner: str
    features: int
    rules: int
    m: int
    cubes: int
    table_bytes: int
    regret_bound: float | None
    vacuous: bool
    useful_from: float | None
    average_limit: float | None
    eps: float
    trials: int | None
    decisions: int | None
    eps_floor: float
    delta_floor: float
    cuts_needed: int
    caveats: list[str]


@dataclass(frozen=True)
class EnsemblePlan:
    """What can be promised of the ensemble.

    voted      whether the answer is a vote; the bounds are about one expert drawn by its weight
    by_delay   the bound by how many labels late each label is; over several partitions, until
               all of them have heard of it
    """

    experts: list[str]
    context_cubes: int
    partitions: int
    regret_bound_against_best_expert: float | None
    regret_bound_against_best_local_oracle: float | None
    voted: bool
    by_delay: dict[int, float]
    caveats: list[str]


@dataclass(frozen=True)
class MissRate:
    """How far a label's miss rate can be from its target after PATIENTS of the label.

    late   above it, by how many of its labels come between a decision and its own label
    """

    target: float
    below: float
    above: float
    late: dict[int, float]


@dataclass(frozen=True)
class Plan:
    """The promises for a whole settings file, at horizon T.

    miss_rates   by label with a miss target

    labels_to_know_the_error   by error rate: labels until it is known to within a point, whatever
                               the settings
    """

    T: int
    delta: float
    learners: list[LearnerPlan]
    ensemble: EnsemblePlan
    labels_to_know_the_error: dict[float, int]
    miss_rates: dict[str, MissRate]
    lengths: list[float]
    curves: dict[str, list[float]]

    def report(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)


def plan(settings: Settings, T: int | None, eps: float, delta: float) -> Plan:
    """Compute every promise for the settings; `T` replaces the learners' own horizons."""
    learners = {name: local_learner(settings, name) for name in settings.learners}
    horizon = T or max(_horizon(learner) for learner in learners.values())
    planned = [_learner(name, learner, horizon, eps, delta) for name, learner in learners.items()]
    lengths = np.geomspace(10, 10**DECADES, CURVE_POINTS).tolist()
    curves = {
        name: [planned_local_bound(learner, t) for t in lengths]
        for name, learner in learners.items()
        if not why_no_local_bound(learner)
    }
    rule = fusion(settings)
    cubes = settings.ensemble.context.partition().size if settings.ensemble.context else 1
    if not why_no_regret_bound(rule):
        curves["ensemble against its best expert, labels on time"] = [
            planned_regret_bound(rule, t, cubes) or 0.0 for t in lengths
        ]
    return Plan(
        T=horizon,
        delta=delta,
        learners=planned,
        ensemble=_ensemble(settings, rule, cubes, horizon, planned),
        miss_rates={
            label: _miss_rate(target)
            for label, target in settings.ensemble.targets(settings.labels).items()
        },
        labels_to_know_the_error={
            rate: labels_to_know_a_share(rate, WITHIN) for rate in ERROR_RATES
        },
        lengths=lengths,
        curves=curves,
    )


def _horizon(learner: LocalLearner) -> int:
    return learner.iup.config.clock.length(1)


def _miss_rate(target: float) -> MissRate:
    late = {delay: miss_rate_gaps(target, PATIENTS, late=delay)[1] for delay in DELAYS if delay}
    return MissRate(target, *miss_rate_gaps(target, PATIENTS), late)


def _learner(name: str, learner: LocalLearner, T: int, eps: float, delta: float) -> LearnerPlan:
    partition, caveats = partition_for(learner, T), why_no_local_bound(learner)
    needed = planned_confidence(learner, T, eps, delta)
    bound = None if caveats else planned_local_bound(learner, T)
    return LearnerPlan(
        learner=name,
        features=learner.space.d,
        rules=len(learner.rules),
        m=partition.m,
        cubes=partition.size,
        table_bytes=_table_bytes(learner, partition, T),
        regret_bound=bound,
        vacuous=bound is not None and bounds.is_vacuous(bound, T),
        useful_from=None if caveats else _useful_from(lambda t: planned_local_bound(learner, t)),
        average_limit=average_limit(learner, T),
        eps=eps,
        trials=needed.trials,
        decisions=needed.decisions,
        eps_floor=needed.floor,
        delta_floor=needed.delta_floor,
        cuts_needed=needed.cuts,
        caveats=caveats,
    )


def _ensemble(
    settings: Settings, rule: Fusion, cubes: int, T: int, planned: list[LearnerPlan]
) -> EnsemblePlan:
    learners, partitions = list(settings.learners), settings.topics.partitions
    best = planned_regret_bound(rule, T, cubes)
    by_delay = {
        delay: planned_regret_bound(rule, T, cubes, delay, partitions=partitions)
        for delay in DELAYS
    }
    local = [learner.regret_bound for learner in planned]
    overruled = bool(settings.ensemble.targets(settings.labels))
    return EnsemblePlan(
        experts=rule.experts(learners),
        context_cubes=cubes,
        partitions=partitions,
        regret_bound_against_best_expert=best,
        regret_bound_against_best_local_oracle=oracle_bound(
            rule, learners, local, best, overruled=overruled
        ),
        voted=votes(rule),
        by_delay={delay: bound for delay, bound in by_delay.items() if bound is not None},
        caveats=why_no_regret_bound(rule),
    )


def _table_bytes(learner: LocalLearner, partition: Partition, T: int) -> int:
    """Return the maximum memory of the counts after T instances."""
    width = learner.iup.phase(1).table.width
    if partition.size <= DENSE_LIMIT:
        return partition.size * (8 * width + 1)
    return min(partition.size, T) * SparseTable.most_bytes_per_cell(width)


def _useful_from(bound: Callable[[float], float]) -> float | None:
    """Return the smallest T of a fine grid from which the bound stays below T, if there is one."""
    grid = np.geomspace(10, 10**DECADES, 20 * DECADES)
    vacuous = np.array([bounds.is_vacuous(bound(t), t) for t in grid.tolist()])
    if vacuous[-1]:
        return None
    return float(grid[np.flatnonzero(vacuous)[-1] + 1]) if vacuous.any() else float(grid[0])
