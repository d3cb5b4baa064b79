"""The simulation of many runs at once does what the product's loop does, run by run."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.paper.parallel_runs import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.protocol import make_runs
from experiments.paper.scalar import race, simulate_scalar
from learners.fusion.registry import make_fusion
from learners.local.iup import Feedback

H = np.array([0.7, 1.0, 3.0])
CASES = {
    "paper": {},
    "theory": {"exploration": 1.0, "preferred": None},
    "full": {"feedback": Feedback.FULL, "exploration": 0.0},
    "three cuts, min-max": {"cuts": 3, "scaling": "minmax"},
    "seven learners of unequal width": {"learners": 7},
}


def compare(runs, settings, mode, *, delay=0, contexts=None, cubes=1, **options):
    votes = simulate_learners(runs, settings, H, delay=delay)

    def make(count):
        return make_fusion(mode, settings.learners, 2, cubes=count, prefer=1, **options)

    fused = simulate_fusion(make, runs, votes, delay=delay, contexts=contexts, cubes=cubes)
    for run in range(runs.count):
        for k, h in enumerate(H):
            alone = simulate_scalar(
                runs, run, settings, h, make(cubes), delay=delay, contexts=contexts
            )
            assert (votes.labels[:, k, run] == alone.labels).all()
            assert (votes.exploring[:, k, run] == alone.exploring).all()
            assert (fused.labels[:, k, run] == alone.fused).all()
    return votes


@pytest.mark.parametrize("case", CASES)
def test_parallel_runs_equal_the_loop_of_one_run(case):
    compare(make_runs(2, steps=150, seed=3), replace(LocalSettings(), **CASES[case]), "wm")


@pytest.mark.parametrize("mode", ["ah", "adaboost", "pwm", "blum", "trackexp"])
def test_every_fusion_rule_runs_in_parallel(mode):
    compare(make_runs(2, steps=100, seed=4), LocalSettings(), mode)


def test_active_parallel_runs_with_missing_wrong_and_late_labels():
    runs = make_runs(2, steps=150, seed=5).with_labels(missing=0.3, flipped=0.2)
    assert runs.silent.any()
    assert (runs.told != runs.truth).any()
    votes = compare(runs, LocalSettings(exploration=0.05), "wm", delay=7, active=True)
    assert votes.exploring.any()


def test_contexts_keep_parallel_runs_apart():
    runs = make_runs(2, steps=150, seed=6)
    contexts = np.random.default_rng(0).integers(0, 4, (2, len(runs.data.rows)))
    compare(runs, LocalSettings(), "ch-vote", contexts=contexts, cubes=4)


def test_probes_are_what_the_next_patient_would_be_told():
    runs = make_runs(2, steps=60, seed=8)
    votes = simulate_learners(runs, LocalSettings(), np.ones(1), probe=True)
    fused = simulate_fusion(lambda c: make_fusion("wm", 3, 2, cubes=c, prefer=1), runs, votes)
    assert fused.probes is not None
    for k in (0, 17, 283):
        # The probed patient as the 61st, with the seed that the probe had.
        draws = np.concatenate([runs.draws, runs.test[:, k : k + 1]], axis=1)
        seeds = np.concatenate([runs.seeds, runs.seeds[:, :1] + np.uint64(k + 1)], axis=1)
        labels = np.concatenate([runs.told, runs.told[:, :1]], axis=1)
        silent = np.zeros_like(labels, bool)
        longer = replace(runs, draws=draws, seeds=seeds, told=labels, silent=silent)
        for run in range(2):
            fusion = make_fusion("wm", 3, 2, prefer=1)
            alone = simulate_scalar(longer, run, LocalSettings(), 1.0, fusion)
            assert alone.fused[-1] == fused.probes[k, 0, run]


def test_parallel_runs_are_twenty_times_as_fast_as_the_loop():
    assert max(race(steps=200)["ratio"] for _ in range(3)) > 20
