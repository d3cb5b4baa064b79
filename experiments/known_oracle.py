"""IUP on synthetic problems whose oracle is known, many runs at once.

There are two rules, whose accuracies are Hölder functions of x with L = 1 and alpha = 1. The runs
are copies of one `Iup`, as in `experiments.paper.parallel_runs`. The doubling trick starts afresh
in each phase, so each phase is a separate `Iup` whose horizon is the phase's length.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from learners.arrays.types import Bools, Floats, Ints
from learners.local.iup import Iup, IupConfig
from learners.local.partition import Partition, cuts_for, unit_cube
from learners.local.phases import Clock, Horizon
from learners.theory.bounds import confidence_epsilon
from learners.theory.intervals import accuracy_interval

Tick = Callable[[], object]
TICK_EVERY = 500


@dataclass(frozen=True)
class Known:
    """A problem with a known oracle: accuracies of two rules at x, both 1-Hölder (alpha = 1)."""

    d: int

    def accuracies(self, x: Floats) -> Floats:
        """Return the accuracies (…, 2) at points (…, d)."""
        wave = np.sin(2.0 * np.pi * x).sum(axis=-1) / (2.0 * np.pi * np.sqrt(self.d))
        return np.stack([0.6 + wave, 0.6 - wave], axis=-1)


@dataclass(frozen=True)
class Trials:
    """R runs of IUP: regret so far (R, T), and how often each guarantee for a decision failed."""

    regret: Floats
    epsilon_fails: float
    interval_misses: float
    m: int


def run_iup(
    d: int, steps: int, clock: Clock, c: float, seeds: list[list[int]], *, tick: Tick = lambda: None
) -> Trials:
    """Run IUP on one synthetic problem per seed."""
    x, right, ties = (np.stack(part) for part in zip(*(_drawn(d, steps, s) for s in seeds),
                                                    strict=True))  # fmt: skip
    chance = Known(d).accuracies(x)
    gap = np.empty(right.shape[:2])
    failed: list[tuple[Bools, Bools]] = []
    m = 1
    for start, stop, T in phases(clock, steps):
        at = slice(start, stop)
        phase = _phase(
            x[:, at], right[:, at], ties[:, at], IupConfig(2, Horizon(T), exploration=c), tick
        )
        best, own = chance[:, at].max(axis=2), np.take_along_axis(
            chance[:, at], phase.rules[:, :, None], axis=2)[:, :, 0]  # fmt: skip
        gap[:, at] = best - own
        m = cuts_for(T, 1.0, d)
        failed.append(_failures(phase, gap[:, at], d, T, m))
    epsilon, interval = (np.concatenate([pair[k].reshape(-1) for pair in failed]) for k in (0, 1))
    return Trials(np.cumsum(gap, axis=1), float(epsilon.mean()), float(interval.mean()), m)


def _drawn(d: int, steps: int, seed: list[int]) -> tuple[Floats, Bools, Ints]:
    rng = np.random.default_rng(seed)
    x = rng.random((steps, d))
    right = rng.random((steps, 2)) < Known(d).accuracies(x)
    return x, right, rng.integers(0, 2**63, steps)


def phases(clock: Clock, steps: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each phase starts and stops, and its horizon."""
    start = 0
    while start < steps:
        number = clock.phase(start)
        T = clock.length(number)
        stop = steps if isinstance(clock, Horizon) else min(steps, start + T)
        yield start, stop, T
        start = stop


@dataclass(frozen=True)
class _Phase:
    """The rules chosen (R, n), in which cubes, and the counts behind each choice."""

    cells: Ints
    rules: Ints
    trials: Ints
    successes: Ints


def _phase(x: Floats, right: Bools, ties: Ints, config: IupConfig, tick: Tick) -> _Phase:
    runs, steps, d = x.shape
    iup = Iup(unit_cube(d), config, copies=runs)
    partition = iup.phase(1).partition
    cells = partition.cells(x.reshape(-1, d)).reshape(runs, steps)
    first = np.arange(runs) * partition.size
    rules, trials, successes = (np.empty((runs, steps), np.int64) for _ in range(3))
    for t in range(steps):
        choices = iup.choose(first + cells[:, t], ties[:, t].astype(np.uint64))
        rules[:, t], trials[:, t], successes[:, t] = (
            choices.rules,
            choices.trials,
            choices.successes,
        )
        iup.learn(1, choices.cubes, choices.rules, right[:, t])
        if t % TICK_EVERY == 0:
            tick()
    return _Phase(cells, rules, trials, successes)


def _failures(phase: _Phase, gap: Floats, d: int, T: int, m: int) -> tuple[Bools, Bools]:
    """Tell where Corollary 1 failed, and where the interval missed the rule's mean in its cube."""
    counts, which = np.unique(phase.trials, return_inverse=True)
    constants = {"T": T, "d": d, "m": m, "cubes": m**d, "rules": 2, "L": 1.0, "alpha": 1.0}
    epsilon = np.array([confidence_epsilon(n, **constants) for n in counts.tolist()])
    tried = phase.trials > 0
    low, high = accuracy_interval(phase.trials[tried], phase.successes[tried])
    mean = cell_means(Known(d), m)[phase.cells[tried], phase.rules[tried]]
    return gap > epsilon[which].reshape(gap.shape), (mean < low) | (mean > high)


def cell_means(problem: Known, m: int, inner: int = 8) -> Floats:
    """Return (cells, 2): each rule's mean accuracy over each cube, computed on a fine grid."""
    side = (np.arange(m * inner) + 0.5) / (m * inner)
    grid = np.stack(np.meshgrid(*([side] * problem.d), indexing="ij"), axis=-1)
    points = grid.reshape(-1, problem.d)
    cells = Partition(unit_cube(problem.d), m).cells(points)
    chance = problem.accuracies(points)
    count = np.bincount(cells)
    return np.stack([np.bincount(cells, chance[:, f]) / count for f in range(2)], axis=1)
