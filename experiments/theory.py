"""Theory against practice: regret under its bounds, coverage of confidence, the doubling trick.

On the paper's runs the regret of AH and CH against the best local learner (LL) is known exactly.
IUP's regret needs the true accuracy of every rule, so it is measured on synthetic problems whose
oracle is known: two rules whose accuracies are Hölder functions of x, with L = 1 and alpha = 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.drift import pseudo_regret
from experiments.paper.lanes import LocalSettings, simulate_learners
from experiments.paper.methods import FUSIONS, Method, context_cubes, run_method
from experiments.paper.protocol import make_runs
from experiments.report.result import Chart, Result, Row, Series, Table
from learners.bounds import (
    confidence_epsilon,
    contextual_hedge_regret,
    hedge_regret,
    is_vacuous,
    local_regret,
)
from learners.intervals import accuracy_interval
from learners.iup import Iup, IupConfig
from learners.partition import Partition, cuts_for, unit_cube
from learners.phases import Clock, Doubling, Horizon
from learners.regret import contextual_regret
from learners.types import Floats, Ints

Tick = Callable[[], object]
CONTEXTS = 3
POINTS = 40


def theory(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """All comparisons."""
    figures: dict[str, float] = {}
    charts = [_fusion_regret(count, seed, steps, figures, tick)]
    tables = []
    rows: list[Row] = []
    for d in (1, 2):
        runs = max(2, min(count // 4, 5))
        charts.append(_local_regret(runs, seed, steps, d, figures=figures, rows=rows, tick=tick))
    columns = [
        "d", "c", "T known", "m", "regret", "largest", "per patient", "bound", "bound below T",
        "Corollary 1 fails", "95 % interval misses",
    ]  # fmt: skip
    tables.append(Table("IUP against a known oracle", columns, rows, digits=4))
    return Result(
        name="theory",
        title="Theory against practice",
        settings={"runs": count, "steps": steps, "seed": seed, "L": 1, "alpha": 1},
        figures=figures,
        tables=tables,
        charts=charts,
        notes=_notes(figures, steps),
    )


def _notes(figures: dict[str, float], steps: int) -> list[str]:
    return [
        (
            f"AH: pseudo-regret {figures['AH.regret']:.0f} on average,"
            f" {figures['AH.largest']:.0f} at most, bound {figures['AH.bound']:.0f}."
            f" CH with {2**CONTEXTS} cubes: {figures['CH.regret']:.0f},"
            f" {figures['CH.largest']:.0f}, bound {figures['CH.bound']:.0f}."
        ),
        (
            f"Where Theorem 1's bound exceeds the {steps} patients themselves it promises nothing"
            " at this horizon; the table says where."
        ),
        (
            "Corollary 1 fails where the chosen rule is worse than the best one by more than"
            " epsilon; it may do so with probability 1/T. The interval is meant to hold at all"
            " times at once."
        ),
    ]


def _fusion_regret(
    count: int, seed: int, steps: int, figures: dict[str, float], tick: Tick
) -> Chart:
    runs, settings = make_runs(count, steps=steps, seed=seed), LocalSettings()
    votes = simulate_learners(runs, settings, np.ones(1), tick=tick)
    at = np.unique(np.linspace(1, steps, POINTS).astype(int))
    methods = {"AH": FUSIONS["AH"], "CH": Method("ch", contexts=CONTEXTS)}
    series = []
    for name, method in methods.items():
        fused = run_method(method, runs, settings, votes, losses=True, tick=tick)
        if name == "AH":
            regret = pseudo_regret(runs, votes, fused.expected)
            bounds = [hedge_regret(t, 3) for t in at]
        else:
            cubes = context_cubes(runs, CONTEXTS, settings.scaling)
            regret = _per_cube(runs.truth, votes.labels[:, 0], fused.expected, cubes, runs.draws)
            bounds = [contextual_hedge_regret(t, 3, 2**CONTEXTS) for t in at]
        figures |= {
            f"{name}.regret": float(regret[-1].mean()),
            f"{name}.largest": float(regret[-1].max()),
            f"{name}.bound": bounds[-1],
        }
        series += [
            Series(f"{name}, mean", at.tolist(), regret[at - 1].mean(axis=1).tolist()),
            Series(f"{name}, largest", at.tolist(), regret[at - 1].max(axis=1).tolist()),
            Series(f"{name}, bound", at.tolist(), list(bounds), dashed=True),
        ]
    return Chart("Pseudo-regret of AH and CH under their bounds", "patients", "errors", series)


def _per_cube(
    truth: Ints,
    labels: np.ndarray,
    expected: np.ndarray | None,
    cubes: Ints | None,
    draws: Ints,
) -> Floats:
    """Return (T, R): expected errors so far, less those of the best LL of each context cube."""
    assert expected is not None  # noqa: S101 - asked for
    assert cubes is not None  # noqa: S101 - there are contexts
    wrong = labels != truth.T[:, :, None]
    at = np.take_along_axis(cubes, draws, axis=1).T
    inside = (at[:, :, None] == np.arange(2**CONTEXTS))[:, :, :, None]
    losses = np.cumsum(wrong[:, :, None] & inside, axis=0, dtype=np.int64)
    return contextual_regret(np.cumsum(expected[:, 0], axis=0), losses)


@dataclass(frozen=True)
class Known:
    """A problem with a known oracle: accuracies of two rules at x, both 1-Hölder (alpha = 1)."""

    d: int

    def accuracies(self, x: Floats) -> Floats:
        """Return (n, 2)."""
        wave = np.sin(2.0 * np.pi * x).sum(axis=1) / (2.0 * np.pi * np.sqrt(self.d))
        return np.stack([0.6 + wave, 0.6 - wave], axis=1)


@dataclass(frozen=True)
class Trial:
    """IUP's run: regret so far (T,), and how often each promise about a decision failed."""

    regret: Floats
    epsilon_fails: float
    interval_misses: float
    m: int


def run_iup(d: int, steps: int, clock: Clock, c: float, seed: list[int]) -> Trial:
    """Stream one synthetic problem, one instance at a time."""
    rng = np.random.default_rng(seed)
    problem = Known(d)
    x = rng.random((steps, d))
    chance = problem.accuracies(x)
    right = rng.random((steps, 2)) < chance
    seeds = rng.integers(0, 2**63, steps).astype(np.uint64)
    iup = Iup(unit_cube(d), IupConfig(rules=2, clock=clock, exploration=c))
    picked, trials, hits = (np.empty(steps, np.int64) for _ in range(3))
    for t in range(steps):
        made = iup.decide(x[t : t + 1], seeds[t : t + 1])
        picked[t], trials[t], hits[t] = made.rules[0], made.trials[0], made.successes[0]
        iup.learn(made.phase, made.cubes, made.rules, right[t : t + 1])
    each = np.arange(steps)
    gap = chance.max(axis=1) - chance[each, picked]
    T = clock.length(iup.current)
    m = cuts_for(T, 1.0, d)
    epsilon = np.array(
        [
            confidence_epsilon(n, T=T, d=d, cubes=m**d, rules=2, L=1.0, alpha=1.0)
            for n in trials.tolist()
        ]
    )
    seen = trials > 0
    low, high = accuracy_interval(trials[seen], hits[seen])
    centre = cell_means(problem, m)[Partition(unit_cube(d), m).cells(x[seen]), picked[seen]]
    misses = float(((centre < low) | (centre > high)).mean()) if isinstance(clock, Horizon) else 0.0
    return Trial(np.cumsum(gap), float((gap > epsilon).mean()), misses, m)


def cell_means(problem: Known, m: int, inner: int = 8) -> Floats:
    """Return (cells, 2): each rule's mean accuracy over each cube, by a fine grid inside it."""
    side = (np.arange(m * inner) + 0.5) / (m * inner)
    grid = np.stack(np.meshgrid(*([side] * problem.d), indexing="ij"), axis=-1)
    points = grid.reshape(-1, problem.d)
    cells = Partition(unit_cube(problem.d), m).cells(points)
    chance = problem.accuracies(points)
    count = np.bincount(cells)
    return np.stack([np.bincount(cells, chance[:, f]) / count for f in range(2)], axis=1)


def _local_regret(
    count: int,
    seed: int,
    steps: int,
    d: int,
    *,
    figures: dict[str, float],
    rows: list[Row],
    tick: Tick,
) -> Chart:
    at = np.unique(np.geomspace(10, steps, POINTS).astype(int))
    variants: dict[str, tuple[Clock, float]] = {
        "c = 1, T known": (Horizon(steps), 1.0),
        "c = 0.05, T known": (Horizon(steps), 0.05),
        "c = 0.05, doubling": (Doubling(max(steps // 100, 10)), 0.05),
    }
    series = []
    m = cuts_for(steps, 1.0, d)
    bound = local_regret(steps, d=d, m=m, cubes=m**d, rules=2, L=1.0, alpha=1.0)
    for name, (clock, c) in variants.items():
        trials = []
        for r in range(count):
            trials.append(run_iup(d, steps, clock, c, [seed, d, r]))
            tick()
        curves = np.array([one.regret for one in trials])
        known = isinstance(clock, Horizon)
        found = _outcome(trials)
        figures |= {f"IUP d={d}, {name}.{key}": value for key, value in found.items()}
        rows.append(
            [d, c, "yes" if known else "no", trials[0].m, found["regret"], found["largest"],
             found["regret"] / steps, bound if known else None,
             "no" if is_vacuous(bound, steps) else "yes", found["epsilon fails"],
             found["interval misses"] if known else None]
        )  # fmt: skip
        series.append(Series(name, at.tolist(), curves[:, at - 1].mean(axis=0).tolist()))
    series.append(Series("T: no regret can exceed it", at.tolist(), at.tolist(), dashed=True))
    title = f"IUP's regret against a known oracle, d = {d} (bound at the end: {bound:.0f})"
    return Chart(title, "patients", "regret", series, log_x=True, log_y=True)


def _outcome(trials: list[Trial]) -> dict[str, float]:
    last = [float(one.regret[-1]) for one in trials]
    return {
        "regret": float(np.mean(last)),
        "largest": max(last),
        "epsilon fails": float(np.mean([one.epsilon_fails for one in trials])),
        "interval misses": float(np.mean([one.interval_misses for one in trials])),
    }
