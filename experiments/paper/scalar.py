"""One run, one instance at a time, with the product's own objects; parallel runs must agree.

This is the loop that a worker runs: raw features go to each `LocalLearner`, their predictions to
the fusion rule, and the label back to all of them. It is also the baseline for the simulation's
speed.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from experiments.paper.parallel_runs import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.protocol import Runs, make_runs
from learners.arrays.types import Bools, Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.registry import make_fusion
from learners.local.learner import Labelled, LocalLearner, Predictions
from learners.rules.constant import Constant


@dataclass(frozen=True)
class ScalarRun:
    """The LLs' labels and exploring flags, both (T, M), and the EL's labels (T,)."""

    labels: Ints
    exploring: Bools
    fused: Ints


def local_learners(runs: Runs, run: int, settings: LocalSettings, h: float) -> list[LocalLearner]:
    """Return the run's LLs as the product builds them."""
    rules = [Constant(0, classes=2), Constant(1, classes=2)]
    learners = []
    for columns in runs.columns(settings.learners):
        space = runs.data.space(columns[run], settings.scaling)
        config = replace(settings.config(space.d), weights=(1.0, h))
        learners.append(LocalLearner(space, rules, config, classes=2))
    return learners


def simulate_scalar(
    runs: Runs,
    run: int,
    settings: LocalSettings,
    h: float,
    fusion: Fusion,
    *,
    contexts: Ints | None = None,
    delay: int = 0,
) -> ScalarRun:
    """Simulate one run, step by step."""
    loop = _Loop(runs, run, settings, h, fusion, contexts=contexts)
    steps = [loop.step(t) for t in range(min(delay, runs.steps))]
    for t in range(len(steps), runs.steps):
        steps.append(loop.step(t))
        loop.settle(t - delay, *steps[t - delay])
    labels = np.array([ballot.labels[0] for _, ballot, _ in steps])
    exploring = np.array([ballot.exploring[0] for _, ballot, _ in steps])
    return ScalarRun(labels, exploring, np.array([fused.labels[0] for *_, fused in steps]))


class _Loop:
    def __init__(
        self,
        runs: Runs,
        run: int,
        settings: LocalSettings,
        h: float,
        fusion: Fusion,
        *,
        contexts: Ints | None,
    ) -> None:
        self.runs, self.run, self.fusion, self.contexts = runs, run, fusion, contexts
        self.learners = local_learners(runs, run, settings, h)
        self.columns = [columns[run] for columns in runs.columns(settings.learners)]

    def step(self, t: int) -> tuple[list[Predictions], Ballot, FusedPredictions]:
        patient = self.runs.draws[self.run, t]
        row, seeds = self.runs.data.rows[patient], self.runs.seeds[self.run, t : t + 1]
        predictions = [
            learner.decide(row[columns][None], seeds)
            for learner, columns in zip(self.learners, self.columns, strict=True)
        ]
        cells = None if self.contexts is None else self.contexts[self.run, patient][None]
        ballot = Ballot.of(
            np.array([[prediction.labels[0] for prediction in predictions]]),
            seeds,
            classes=2,
            cells=cells,
            exploring=np.array([[prediction.choices.exploring[0] for prediction in predictions]]),
        )
        return predictions, ballot, self.fusion.decide(ballot)

    def settle(
        self, t: int, predictions: list[Predictions], ballot: Ballot, fused: FusedPredictions
    ) -> None:
        if self.runs.silent[self.run, t]:
            return
        label = self.runs.told[self.run, t : t + 1]
        for learner, prediction in zip(self.learners, predictions, strict=True):
            learner.learn(Labelled.of(prediction, label))
        self.fusion.learn(ballot, fused, label)


def race(count: int = 50, steps: int = 300, seed: int = 1) -> dict[str, float]:
    """Return instances per second of parallel runs and of the scalar loop, on the same runs.

    The scalar loop is timed on one run only, since every run takes it equally long.
    """
    runs, settings = make_runs(count, steps=steps, seed=seed), LocalSettings()
    started = perf_counter()
    votes = simulate_learners(runs, settings, np.ones(1))
    simulate_fusion(lambda cubes: make_fusion("wm", 3, 2, cubes=cubes, prefer=1), runs, votes)
    parallel = count * steps / (perf_counter() - started)
    started = perf_counter()
    simulate_scalar(runs, 0, settings, 1.0, make_fusion("wm", 3, 2, prefer=1))
    scalar = steps / (perf_counter() - started)
    return {"lanes_per_s": parallel, "scalar_per_s": scalar, "ratio": parallel / scalar}
