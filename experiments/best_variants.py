"""The best variant for each protocol, tuned on different seeds and orders from those reported.

Paper's protocol: cells that split instead of IUP's cubes, a contextual vote over six features, and
h = 1, so that no threshold is tuned. Hedge's bound per context cube (Theorem 4, labels on time)
holds for its weights; Theorem 1 does not cover cells that depend on the labels.

Single pass: each of three LLs mixes three rules that learn jointly with the other LLs, and the EL
stacks their log-odds: preset `mixed`, `mode = "stack"`, as `hb init` proposes. This has no regret
bound of its own; with `mode = "committee"`, Theorem 2 bounds the committee's loss against that of
its best member. `hb experiments tuning` shows it beside what else was tried, and how River's
settings were chosen.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from experiments.paper.adaptive import votes_of
from experiments.paper.methods import Method, run_method
from experiments.paper.parallel_runs import LocalSettings
from experiments.paper.protocol import make_runs
from experiments.paper.published import published
from experiments.paper.rates import Rates, rates
from experiments.paper.sweep import visits
from experiments.report.result import Result, Row, Table
from experiments.single_pass.bootstrap import Gap, gap
from experiments.single_pass.local_passes import Task
from experiments.single_pass.methods import BOUNDED, OURS, PROPOSED
from experiments.single_pass.orders import TUNED
from experiments.single_pass.river_peers import BEST, DEFAULT
from experiments.single_pass.scored_passes import Score, our_scores, river_scores

Tick = Callable[[], object]
FRESH = 314_159
"""Added to the seed, so that the runs and orders reported here are used nowhere else."""

VARIANT = Method("ch-vote", contexts=6)


def best(
    count: int = 50, *, seed: int = 2017, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Report both protocols."""
    seed += FRESH
    steps = 1_000 if quick else 10_000
    overall, parts = paper_protocol(count, seed, steps, tick)
    scores = single(min(count, 2) if quick else count, seed, tick)
    figures = {
        **dict(zip(("PER", "FPR", "FNR"), overall.mean.tolist(), strict=True)),
        "PER_se": float(overall.se[0]),
        "first_visits_PER": float(parts["first visits"].mean[0]),
        "repeats_PER": float(parts["repeats"].mean[0]),
        **_single_figures(scores),
    }
    return _result(figures, {"runs and orders": count, "seed": seed}, steps)


def _single_figures(scores: Mapping[str, Score]) -> dict[str, float]:
    """Return our figures beside River's, each with the setting chosen on the tuning orders."""
    ours, river = scores[PROPOSED], scores[BEST]
    figures = {
        "single_pass_PER": float(ours.plain.mean[0]),
        "single_pass_se": float(ours.plain.se[0]),
        "single_pass_FNR": float(ours.plain.mean[2]),
        "single_pass_river_best_PER": float(river.plain.mean[0]),
        "single_pass_river_best_se": float(river.plain.se[0]),
        "single_pass_river_default_PER": float(scores[DEFAULT].plain.mean[0]),
        "single_pass_with_bound_PER": float(scores[BOUNDED].plain.mean[0]),
        **gap(ours.errors, river.errors).figures("single_pass_gap"),
    }
    if ours.limited is None or river.limited is None:
        return figures
    assert ours.limited_errors is not None  # noqa: S101 - made together with `limited`
    assert river.limited_errors is not None  # noqa: S101 - as above
    return figures | {
        "single_pass_PER_at_FNR_3": float(ours.limited.mean[0]),
        "single_pass_river_best_PER_at_FNR_3": float(river.limited.mean[0]),
        **gap(ours.limited_errors, river.limited_errors).figures("single_pass_gap_at_FNR_3"),
    }


def _result(figures: dict[str, float], settings: dict[str, Any], steps: int) -> Result:
    rows: list[Row] = [[name, value] for name, value in figures.items()]
    return Result(
        name="best",
        title="Our best variants, on fresh seeds",
        settings={
            **settings,
            "tuned with seed": TUNED,
            "paper's protocol": "rule cells, ch-vote with d_EL = 6, h = 1",
            "single pass": PROPOSED,
            "River": BEST.removeprefix("River "),
        },
        figures=figures,
        tables=[Table("Figures (rates in percent)", ["figure", "value"], rows)],
        notes=_notes(figures, steps),
    )


def _notes(f: dict[str, float], steps: int) -> list[str]:
    lowest = published()["cel"]["rows"]["3"][0][0]
    below = "below" if f["PER"] < lowest and f["FNR"] <= 3.0 else "not below"
    notes = [
        (
            f"Paper's protocol: {f['PER']:.2f} PER at {f['FNR']:.2f} FNR is {below} the paper's"
            f" best ({lowest})."
        ),
        (
            f"Single pass: {f['single_pass_PER']:.2f} against River's best with all features,"
            f" {f['single_pass_river_best_PER']:.2f}: {_level(f, 'single_pass_gap')}."
        ),
    ]
    if "single_pass_PER_at_FNR_3" in f:
        notes.append(
            f"At FNR <= 3 %, thresholds in hindsight: {f['single_pass_PER_at_FNR_3']:.2f} against"
            f" {f['single_pass_river_best_PER_at_FNR_3']:.2f}:"
            f" {_level(f, 'single_pass_gap_at_FNR_3')}."
        )
    return [
        *notes,
        (
            f"The paper's protocol draws each patient about {steps // 284} times. On first visits"
            f" this variant errs in {f['first_visits_PER']:.1f} %, on repeats in"
            f" {f['repeats_PER']:.1f} %: it measures memory as much as diagnosis."
        ),
    ]


def _level(f: dict[str, float], name: str) -> str:
    return str(Gap(*(f[f"{name}{part}"] for part in ("", "_se", "_patients_se", "_low", "_high"))))


def paper_protocol(count: int, seed: int, steps: int, tick: Tick) -> tuple[Rates, dict[str, Rates]]:
    """Return the rates on fresh runs, and separately on their first visits and repeats."""
    runs = make_runs(count, steps=steps, seed=seed)
    votes, _ = votes_of(runs, {}, np.ones(1), tick)
    labels = run_method(VARIANT, runs, LocalSettings(), votes, tick=tick).labels[:, 0]
    return rates(labels, runs.truth), visits(labels, runs)


def single(count: int, seed: int, tick: Tick) -> dict[str, Score]:
    """Return our scores and River's on the same orders."""
    tasks = [Task("wdbc", seed, number) for number in range(count)]
    orders = [task.order() for task in tasks]
    scores = our_scores(tasks, orders, {name: OURS[name] for name in (PROPOSED, BOUNDED)}, tick)
    return scores | river_scores(tasks, orders, (BEST, DEFAULT), tick)
