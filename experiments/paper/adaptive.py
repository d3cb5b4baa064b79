"""Beyond the paper: an adaptive partition (`learners/rules/cells.py`) compared with IUP's cubes.

Both only count labels: IUP, with the two constant rules and full feedback, counts them per cube;
the rule `cells` counts them per cell, and splits cells where many labels arrive.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.paper.methods import FUSIONS, each_value, run_method
from experiments.paper.one_stage import FINE
from experiments.paper.parallel_runs import LocalSettings, Votes, simulate_learners
from experiments.paper.protocol import Runs, make_runs
from experiments.paper.search import choose
from experiments.paper.sweep import visits
from experiments.process_pool import spread
from experiments.report.result import Result, Row, Table
from experiments.single_pass.local_passes import Task
from experiments.single_pass.single_pass import as_runs
from learners.arrays.types import Floats, Ints
from learners.local.iup import Feedback
from learners.local.partition import unit_cube
from learners.rules.cells import AdaptiveCells

Tick = Callable[[], object]
Job = tuple[Floats, Ints, Ints, dict[str, Any]]
"""One LL's rows of all patients, in the unit cube; the patients drawn, their labels, options."""


def follow(job: Job) -> tuple[Floats, int]:
    """Run one LL; return its chance of a positive before each label, and its number of cells."""
    rows, draws, labels, options = job
    rule = AdaptiveCells("cells", unit_cube(rows.shape[1]), 2, **options)
    chance = np.empty(len(draws))
    paths: dict[int, list[int]] = {}
    size = 1
    for t, (patient, label) in enumerate(zip(draws.tolist(), labels.tolist(), strict=True)):
        if len(rule.sides) != size:
            # A cell was split, so it may no longer be the smallest one around a patient.
            paths.clear()
            size = len(rule.sides)
        path = paths.get(patient)
        if path is None:
            path = paths[patient] = rule.path(rows[patient])
        chance[t] = rule.chances(path)[1]
        rule.count(path, rows[patient], label)
    return chance, size


def votes_of(
    runs: Runs, options: dict[str, Any], h: Floats, tick: Tick = lambda: None
) -> tuple[Votes, float]:
    """Return the votes of three LLs for each h, and their average number of cells.

    An LL predicts the positive label as long as the odds of a negative are at most h.
    """
    unit = runs.data.unit()
    jobs: list[Job] = [
        (unit[:, columns[r]], runs.draws[r], runs.told[r], options)
        for columns in runs.columns(3)
        for r in range(runs.count)
    ]
    followed = spread(follow, jobs, tick=tick)
    p = np.array([chance for chance, _ in followed]).reshape(3, runs.count, runs.steps)
    p = p.transpose(2, 1, 0)[:, None]  # (T, 1, R, M)
    labels = (h[:, None, None] * p >= 1.0 - p).astype(np.int8)
    return Votes(labels, np.zeros_like(labels, np.bool_)), float(np.mean([n for _, n in followed]))


UNIFORM = LocalSettings(feedback=Feedback.FULL, exploration=0.0)
TRIED: dict[str, dict[str, Any]] = {
    "cells": {},
    "cells, split after 16": {"enough": 16},
}


def adaptive(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Compare adaptive cells with IUP's cubes, in both protocols."""
    orders = [Task("wdbc", seed, number).order() for number in range(count)]
    streams = {"paper's": make_runs(count, steps=steps, seed=seed), "single pass": as_runs(orders)}
    figures: dict[str, float] = {}
    rows: list[Row] = []
    grid = np.append(FINE, 1.0)
    for protocol, runs in streams.items():
        cases = {"cubes": (simulate_learners(runs, UNIFORM, grid, tick=tick), 1024.0)}
        for name, options in TRIED.items():
            cases[name] = votes_of(runs, options, grid, tick)
        for name, (votes, cells) in cases.items():
            judged = _judged(runs, votes, tick)
            figures |= {f"{protocol}.{name}.{k}": v for k, v in judged.items() if v is not None}
            rows.append([protocol, name, round(cells), *judged.values()])
    return Result(
        name="adaptive",
        title="A partition that adapts",
        settings={"runs and orders": count, "steps": steps, "seed": seed, "feedback": "full",
                  "fusion": "WM"},
        figures=figures,
        tables=[Table("Cells that split, beside IUP's cubes (percent)", COLUMNS, rows)],
        notes=_notes(figures),
    )  # fmt: skip


COLUMNS = [
    "protocol", "partition", "cells per LL", "PER", "±", "FPR", "FNR", "first visits PER",
    "PER at FNR <= 3",
]  # fmt: skip


def _judged(runs: Runs, votes: Votes, tick: Tick) -> dict[str, float | None]:
    """Return WM's rates at h = 1, on first visits, and at the best h with FNR <= 3 %."""
    wm = run_method(FUSIONS["WM"], runs, UNIFORM, votes, tick=tick).labels
    *tried, plain = each_value(wm, runs)
    tuned = choose(dict(zip(FINE.tolist(), tried, strict=True)))
    per, fpr, fnr = plain.mean.tolist()
    first = float(visits(wm[:, -1], runs)["first visits"].mean[0])
    limited = float(tuned.rates.mean[0]) if tuned.reached else None
    return {"PER": per, "se": float(plain.se[0]), "FPR": fpr, "FNR": fnr, "first": first,
            "limited": limited}  # fmt: skip


def _notes(f: dict[str, float]) -> list[str]:
    notes = []
    for protocol in ("paper's", "single pass"):
        cubes, cells = f[f"{protocol}.cubes.PER"], f[f"{protocol}.cells.PER"]
        fused = "helps" if cells < cubes else "does not help"
        notes.append(
            f"{protocol.capitalize()} protocol: it {fused}: {cells:.2f} against {cubes:.2f} with"
            f" cubes; on first visits {f[f'{protocol}.cells.first']:.1f} against"
            f" {f[f'{protocol}.cubes.first']:.1f}."
        )
    return [
        *notes,
        (
            'It is the rule `kind = "cells"` of the settings. Theorem 1 does not cover it: its'
            " cells depend on the labels. Its state consists of integers, a fold over the labels in"
            " order, which `hb audit` recomputes exactly. On data like WDBC, rules that fit a line"
            " through all of a learner's features are far better in a single pass."
        ),
    ]
