"""The methods by their names in the tables, and how to run them at given values of h."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.paper.parallel_runs import (
    Fused,
    LocalSettings,
    Tick,
    Votes,
    simulate_fusion,
    simulate_learners,
)
from experiments.paper.protocol import Runs
from experiments.paper.rates import Rates, hindsight, joined, rates
from experiments.paper.search import Evaluate
from learners.arrays.types import Floats, Ints
from learners.fusion.base import Fusion
from learners.fusion.registry import make_fusion
from learners.local.partition import Partition, unit_cube

POSITIVE = 1


@dataclass(frozen=True)
class Method:
    """A fusion rule by its name in the settings, with its options.

    contexts   d_EL: how many features the EL sees, drawn at random in each run, each split in two
    """

    mode: str
    active: bool = False
    contexts: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def maker(self, learners: int) -> Callable[[int], Fusion]:
        """Return a function that builds the rule for a number of cubes."""

        def make(cubes: int) -> Fusion:
            return make_fusion(
                self.mode,
                learners,
                2,
                cubes=cubes,
                active=self.active,
                prefer=POSITIVE,
                **self.options,
            )

        return make


FUSIONS = {
    "WM": Method("wm"),
    "AH": Method("ah"),
    "AdaBoost": Method("adaboost"),
    "PWM": Method("pwm"),
    "Blum": Method("blum"),
    "TrackExp": Method("trackexp"),
}
ACTIVE = {"Active WM": Method("wm", active=True), "Active AH": Method("ah", active=True)}


REFERENCES = ("Best LL", "Average LL", "Worst LL")


def evaluator(
    runs: Runs,
    settings: LocalSettings,
    methods: Mapping[str, Method],
    *,
    at_once: int = 50,
    tick: Tick = lambda: None,
) -> Evaluate:
    """Return a function that runs methods, and the three references, at given values of h.

    at_once   how many runs are simulated together
    """

    def evaluate(values: Mapping[str, Floats]) -> dict[str, list[Rates]]:
        parts = [_evaluated(part, settings, methods, values, tick) for part in runs.parts(at_once)]
        return {
            name: [joined([part[name][k] for part in parts]) for k in range(len(wanted))]
            for name, wanted in values.items()
        }

    return evaluate


def _evaluated(
    runs: Runs,
    settings: LocalSettings,
    methods: Mapping[str, Method],
    values: Mapping[str, Floats],
    tick: Tick,
) -> dict[str, list[Rates]]:
    every = np.unique(np.concatenate(list(values.values())))
    votes = simulate_learners(runs, settings, every, tick=tick)
    results: dict[str, list[Rates]] = {}
    for name, wanted in values.items():
        mine = votes.pick(np.searchsorted(every, wanted))
        if name in REFERENCES:
            results[name] = _references(mine, runs, name)
        else:
            fused = run_method(methods[name], runs, settings, mine, tick=tick)
            results[name] = each_value(fused.labels, runs)
    return results


def run_method(
    method: Method,
    runs: Runs,
    settings: LocalSettings,
    votes: Votes,
    *,
    delay: int = 0,
    losses: bool = False,
    tick: Tick = lambda: None,
) -> Fused:
    """Run one method on the LLs' votes."""
    return simulate_fusion(
        method.maker(settings.learners),
        runs,
        votes,
        contexts=context_cubes(runs, method.contexts, settings.scaling),
        cubes=2**method.contexts,
        delay=delay,
        losses=losses,
        tick=tick,
    )


def context_cubes(runs: Runs, d: int, scaling: str) -> Ints | None:
    """Return (R, patients) context cubes, made of the last d features that each run dealt."""
    if not d:
        return None
    partition, unit = Partition(unit_cube(d), 2), runs.data.unit(scaling)
    return np.stack([partition.cells(unit[:, columns]) for columns in runs.order[:, -d:]])


def each_value(labels: np.ndarray, runs: Runs) -> list[Rates]:
    """Return the rates of (T, H, R) labels for each of the H values."""
    return [rates(labels[:, k], runs.truth) for k in range(labels.shape[1])]


def _references(votes: Votes, runs: Runs, name: str) -> list[Rates]:
    values = range(votes.labels.shape[1])
    return [hindsight(votes.labels[:, k], runs.truth)[name] for k in values]
