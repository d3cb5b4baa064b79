"""`hb bench core`: a local learner's decide and learn, against the paper's loop in plain Python.

Both take the same stream of points in [0, 1]^10 whose label depends on the point, start untrained,
decide each instance and learn its label. The loop is the pseudocode of IUP as a Python programmer
would write it. Also measured: what an instance costs after a thousand and after a million cubes
have been visited, and the memory that a visited cube takes.
"""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.timing import race
from learners.arrays.types import Bools, Floats, Ints, Seeds
from learners.local.features import unit_cube
from learners.local.iup import Iup, IupConfig
from learners.local.phases import Horizon

BATCH = 2_000
D = 10
M = 2
RULES = 2
T = 10_000
SPARSE_CUTS = 16
FEW, MANY = 1_000, 1_000_000
GROWTH_TURNS = 4
"""Rounds of the second comparison per round of the first: its turns are short."""


def run(
    rounds: int = 5, seed: int = 1, tick: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Measure, and return the report that `--json` prints."""
    rng = np.random.default_rng(seed)
    ours, paper = _paper_race(rng, rounds, tick)
    few, many, memory = _growth_race(rng, rounds, tick)
    return {
        "ratios": {"paper_loop": paper / ours},
        "figures": {
            "ours_ns_per_instance": ours * 1e9,
            "paper_loop_ns_per_instance": paper * 1e9,
            "ours_instances_per_s": 1.0 / ours,
            "ns_per_instance_at_1e3_cubes": few * 1e9,
            "ns_per_instance_at_1e6_cubes": many * 1e9,
            "cost_at_1e6_over_1e3_cubes": many / few,
            "bytes_per_visited_cube": memory,
        },
        "settings": {
            "batch": BATCH,
            "d": D,
            "m": M,
            "rules": RULES,
            "T": T,
            "rounds": rounds,
            "seed": seed,
            "sparse_m": SPARSE_CUTS,
        },
    }


def steps(rounds: int) -> int:
    """Return how often `tick` will be called."""
    return 2 * rounds + 2 * GROWTH_TURNS * rounds


def _paper_race(
    rng: np.random.Generator, rounds: int, tick: Callable[[], object]
) -> tuple[float, float]:
    """Return seconds per instance of this code and of the paper's loop."""
    count = 50 * BATCH
    x = rng.random((count, D))
    positive = rng.random(count) < 0.5 + 0.45 * np.sin(3 * x[:, 0] + 2 * x[:, 1])
    correct = np.stack([positive, ~positive], axis=1)
    seeds = rng.integers(0, 2**64, count, dtype=np.uint64)
    points, answers = x.tolist(), correct.tolist()
    rivals = {
        "ours": lambda: _stream(_learner(M), x, correct, seeds),
        "paper": lambda: paper_loop(points, answers, random.Random(1)),  # noqa: S311 - ties only
    }
    best = race(rivals, rounds, tick)
    return best["ours"] / count, best["paper"] / count


def _learner(cuts: int) -> Iup:
    return Iup(unit_cube(D), IupConfig(rules=RULES, clock=Horizon(T), cuts=cuts))


def _stream(iup: Iup, x: Floats, correct: Bools, seeds: Seeds) -> None:
    for start in range(0, len(x), BATCH):
        batch = slice(start, start + BATCH)
        decided = iup.decide(x[batch], seeds[batch])
        iup.learn(decided.phase, decided.cubes, decided.rules, correct[batch])


def paper_loop(
    points: list[list[float]], correct: list[list[bool]], ties: random.Random
) -> dict[tuple[int, tuple[int, ...]], int]:
    """IUP as printed in the paper, one instance at a time; returns the trials N."""
    trials: dict[tuple[int, tuple[int, ...]], int] = {}
    means: dict[tuple[int, tuple[int, ...]], float] = {}
    for x, right in zip(points, correct, strict=True):
        cube = tuple(min(int(value * M), M - 1) for value in x)
        index = []
        for f in range(RULES):
            n = trials.get((f, cube), 0)
            if n > 0:
                log = math.log(2 * RULES * M**D * T**1.5)
                index.append(means[f, cube] + math.sqrt(2 / n * (1 + 2 * log)))
            else:
                index.append(math.inf)
        best = max(index)
        chosen = ties.choice([f for f in range(RULES) if index[f] == best])
        n = trials.get((chosen, cube), 0)
        reward = 1 if right[chosen] else 0
        means[chosen, cube] = (means.get((chosen, cube), 0.0) * n + reward) / (n + 1)
        trials[chosen, cube] = n + 1
    return trials


def _growth_race(
    rng: np.random.Generator, rounds: int, tick: Callable[[], object]
) -> tuple[float, float, float]:
    """Return seconds per instance with few and with many visited cubes, and bytes per cube."""
    few, many = _visited(rng, FEW), _visited(rng, MANY)
    memory = many[0].phase(1).table.nbytes / len(many[0].phase(1).table)
    count = 20 * BATCH
    correct = rng.random((count, RULES)) < 0.6
    seeds = rng.integers(0, 2**64, count, dtype=np.uint64)
    x_few = _points(many[0], rng.choice(few[1], count))
    x_many = _points(many[0], rng.choice(many[1], count))
    rivals = {
        "few": lambda: _stream(few[0], x_few, correct, seeds),
        "many": lambda: _stream(many[0], x_many, correct, seeds),
    }
    best = race(rivals, GROWTH_TURNS * rounds, tick)
    return best["few"] / count, best["many"] / count, memory


def _visited(rng: np.random.Generator, cubes: int) -> tuple[Iup, Ints]:
    """Return a learner that has visited `cubes` random cubes of a huge partition, and their ids."""
    iup = _learner(SPARSE_CUTS)
    ids = np.unique(rng.integers(0, iup.phase(1).partition.size, int(cubes * 1.01)))
    ids = rng.permutation(ids)[:cubes]
    correct = rng.random((cubes, RULES)) < 0.6
    for rule in range(RULES):
        for part in np.array_split(np.arange(cubes), max(1, cubes // 50_000)):
            iup.learn(1, ids[part], np.full(len(part), rule), correct[part])
    return iup, ids


def _points(iup: Iup, cells: Ints) -> Floats:
    """Return the centres of cells."""
    partition = iup.phase(1).partition
    return np.asarray((partition.digits(cells) + 0.5) / partition.radices)
