"""The bounds of the paper for a settings file: the numbers behind `hb plan`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from learners.arrays.tables import DENSE_LIMIT, SparseTable
from learners.local.learner import LocalLearner
from learners.local.partition import Partition
from learners.theory import bounds
from learners.theory.promises import partition_for, planned_bound, uncovered
from settings.building import local_learner
from settings.model import Settings

CURVE_POINTS = 61
DECADES = 12


@dataclass(frozen=True)
class Promise:
    """The bounds of one local learner."""

    learner: str
    features: int
    rules: int
    m: int
    cubes: int
    table_bytes: int
    regret_bound: float
    vacuous: bool
    useful_from: float | None
    average_limit: float
    eps: float
    patients_per_cube: int | None
    patients_total: int | None
    eps_floor: float
    caveats: list[str]


@dataclass(frozen=True)
class Plan:
    """The bounds of a whole settings file, at horizon T."""

    T: int
    delta: float
    learners: list[Promise]
    ensemble: dict[str, float]
    lengths: list[float]
    curves: dict[str, list[float]]

    def report(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)


def plan(settings: Settings, T: int | None, eps: float, delta: float) -> Plan:
    """Compute every bound for the settings; `T` replaces the learners' own horizons."""
    learners = {name: local_learner(settings, name) for name in settings.learners}
    horizon = T or max(_horizon(learner) for learner in learners.values())
    promises = [_promise(name, learner, horizon, eps, delta) for name, learner in learners.items()]
    lengths = np.geomspace(10, 10**DECADES, CURVE_POINTS).tolist()
    curves = {
        name: [planned_bound(learner, t) for t in lengths] for name, learner in learners.items()
    }
    cubes = settings.ensemble.context.partition().size if settings.ensemble.context else 1
    if len(learners) > 1:
        curves["ensemble against best learner"] = [
            bounds.contextual_hedge_regret(t, len(learners), cubes) for t in lengths
        ]
    return Plan(
        T=horizon,
        delta=delta,
        learners=promises,
        ensemble=_ensemble(len(learners), cubes, horizon, [p.regret_bound for p in promises]),
        lengths=lengths,
        curves=curves,
    )


def _horizon(learner: LocalLearner) -> int:
    return learner.iup.config.clock.length(1)


def _promise(name: str, learner: LocalLearner, T: int, eps: float, delta: float) -> Promise:
    partition = partition_for(learner, T)
    alpha, L = learner.iup.config.alpha, learner.lipschitz
    needed = bounds.patients_needed(
        eps,
        delta,
        T=T,
        d=partition.d,
        cubes=partition.size,
        rules=len(learner.rules),
        L=L,
        alpha=alpha,
    )
    bound = planned_bound(learner, T)
    return Promise(
        learner=name,
        features=learner.space.d,
        rules=len(learner.rules),
        m=partition.m,
        cubes=partition.size,
        table_bytes=_table_bytes(learner, partition, T),
        regret_bound=bound,
        vacuous=bounds.is_vacuous(bound, T),
        useful_from=_useful_from(lambda t: planned_bound(learner, t)),
        average_limit=bounds.memory_bounded_limit(L, alpha, partition.d, partition.m),
        eps=eps,
        patients_per_cube=needed.per_cube,
        patients_total=needed.total,
        eps_floor=needed.floor,
        caveats=uncovered(learner),
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


def _ensemble(M: int, cubes: int, T: int, local: list[float]) -> dict[str, float]:
    best = bounds.contextual_hedge_regret(T, M, cubes)
    return {
        "learners": M,
        "context_cubes": cubes,
        "regret_bound_against_best_learner": best,
        "regret_bound_against_best_local_oracle": bounds.ensemble_regret(T, M, min(local)),
    }
