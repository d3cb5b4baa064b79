"""The best variant for each protocol, tuned on other seeds and orders than it is reported on.

Paper's protocol: full feedback (a label tells of every rule whether it was right), no exploration,
which full feedback makes needless, a split at the mean, and a contextual vote over six features.
h is tuned on its own runs to an FNR of 2.5 %, so that fresh runs stay below 3 %. Hedge's bound per
context cube (Theorem 4) holds for its weights; IUP's bound does not cover c = 0.

Single pass: a committee of three rules that learn in each of three LLs, and a stack of their
log-odds in the EL: `kind = "committee"`, `mode = "stack"`. No regret bound of its own; as a member
of `mode = "committee"` Theorem 2 bounds its loss against the best member.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.paper.lanes import LocalSettings, simulate_learners
from experiments.paper.methods import Method, evaluator, run_method
from experiments.paper.one_stage import FINE
from experiments.paper.protocol import make_runs
from experiments.paper.published import published
from experiments.paper.rates import Rates, rates
from experiments.paper.search import tune
from experiments.paper.sweep import visits
from experiments.report.result import Result, Row, Table
from experiments.stream.locals import Task
from experiments.stream.orders import TUNED
from experiments.stream.river_peers import PEERS, RATES, river_pass, stacked_pass
from experiments.stream.single_pass import OURS, our_scores, river_scores, scored
from experiments.workers import spread
from learners.iup import Feedback

Tick = Callable[[], object]
FRESH = 90_210
"""Added to the seed, so that the runs and orders reported here are used nowhere else."""

VARIANT = Method("ch-vote", contexts=6)
LOCAL = LocalSettings(feedback=Feedback.FULL, exploration=0.0)
MARGIN = 2.5
CHOSEN = "kdi, stack"
LIMITED = "bayes with Fourier features, stack"
"""Of the methods tried on the tuning orders, the one with the lowest PER at FNR <= 3 %."""


def best(
    count: int = 50, *, seed: int = 2017, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Report both protocols."""
    seed += FRESH
    steps = 1_000 if quick else 10_000
    h, found, parts = paper_protocol(count, seed, steps, tick)
    tuning = 2 if quick else max(2, min(count, 20))
    rate = best_river_rate(tuning, tick)
    ours, river, score = single(min(count, 2) if quick else count, seed, rate, tick)
    gap = ours.per_run[0] - river.per_run[0]
    figures = {
        **dict(zip(("PER", "FPR", "FNR"), found.mean.tolist(), strict=True)),
        "PER_se": float(found.se[0]),
        "h": h,
        "first_visits_PER": float(parts["first visits"].mean[0]),
        "repeats_PER": float(parts["repeats"].mean[0]),
        "single_pass_PER": float(ours.mean[0]),
        "single_pass_se": float(ours.se[0]),
        "single_pass_FNR": float(ours.mean[2]),
        "single_pass_river_best_PER": float(river.mean[0]),
        "single_pass_river_best_se": float(river.se[0]),
        "single_pass_river_rate": rate,
        "single_pass_gap": float(gap.mean()),
        "single_pass_gap_se": float(gap.std(ddof=1) / np.sqrt(len(gap))),
        **score,
    }
    return _result(figures, {"runs": count, "seed": seed}, steps)


def _result(figures: dict[str, float], settings: dict[str, Any], steps: int) -> Result:
    rows: list[Row] = [[name, value] for name, value in figures.items()]
    return Result(
        name="best",
        title="Our best variants, on fresh seeds",
        settings={
            **settings,
            "tuned with seed": TUNED,
            "paper's protocol": "full feedback, c = 0, zlog, ch-vote with d_EL = 6",
            "single pass": CHOSEN,
            "single pass at FNR <= 3 %": LIMITED,
        },
        figures=figures,
        tables=[Table("Figures (rates in percent)", ["figure", "value"], rows)],
        notes=_notes(figures, steps),
    )


def _notes(f: dict[str, float], steps: int) -> list[str]:
    lowest = published()["cel"]["rows"]["3"][0][0]
    below = "below" if f["PER"] < lowest and f["FNR"] <= 3.0 else "not below"
    level = "level or ahead" if f["single_pass_gap"] <= f["single_pass_gap_se"] else "behind"
    return [
        (
            f"Paper's protocol: {f['PER']:.2f} PER at {f['FNR']:.2f} FNR is {below} the paper's"
            f" best ({lowest})."
        ),
        (
            f"Single pass: {f['single_pass_PER']:.2f} against River's best with all features,"
            f" {f['single_pass_river_best_PER']:.2f}: {level}, by the standard error of the paired"
            " difference."
        ),
        (
            f"The paper's protocol draws each patient about {steps // 284} times. On first visits"
            f" this variant errs in {f['first_visits_PER']:.1f} %, on repeats in"
            f" {f['repeats_PER']:.1f} %: it measures memory as much as diagnosis."
        ),
    ]


def paper_protocol(
    count: int, seed: int, steps: int, tick: Tick
) -> tuple[float, Rates, dict[str, Rates]]:
    """Tune h on other runs, then return it with the rates of fresh ones."""
    tuning = make_runs(max(2, min(count, 20)), steps=steps, seed=TUNED)
    evaluate = evaluator(tuning, LOCAL, {"best": VARIANT}, tick=tick)
    h = tune(["best"], evaluate, FINE, limit=MARGIN, refine=0)["best"].h
    runs = make_runs(count, steps=steps, seed=seed)
    votes = simulate_learners(runs, LOCAL, np.array([h]), tick=tick)
    labels = run_method(VARIANT, runs, LOCAL, votes, tick=tick).labels[:, 0]
    return h, rates(labels, runs.truth), visits(labels, runs)


def best_river_rate(count: int, tick: Tick) -> float:
    """Return the step size of River's logistic regression with the lowest PER on tuning orders."""
    tasks = [Task("wdbc", TUNED, number) for number in range(count)]
    orders = [task.order() for task in tasks]

    def per(rate: float) -> float:
        parts = spread(river_pass, [(task, PEERS[0], rate) for task in tasks], tick=tick)
        return float(scored(stacked_pass(parts), orders).plain.mean[0])

    return min(RATES, key=per)


def single(count: int, seed: int, rate: float, tick: Tick) -> tuple[Rates, Rates, dict[str, float]]:
    """Return our rates and River's best on the same orders, and both at FNR <= 3 %."""
    tasks = [Task("wdbc", seed, number) for number in range(count)]
    orders = [task.order() for task in tasks]
    both = our_scores(tasks, orders, {name: OURS[name] for name in (CHOSEN, LIMITED)}, tick)
    ours = both[CHOSEN]
    parts = spread(river_pass, [(task, PEERS[0], rate) for task in tasks], tick=tick)
    river = {"": scored(stacked_pass(parts), orders)}
    river |= river_scores(tasks, orders, PEERS[1:2], tick)
    limits = {
        "single_pass_PER_at_FNR_3": both[LIMITED].limited,
        "single_pass_river_best_PER_at_FNR_3": river[""].limited,
    }
    more = {name: float(found.mean[0]) for name, found in limits.items() if found is not None}
    more["single_pass_river_default_PER"] = float(river[PEERS[1]].plain.mean[0])
    return ours.plain, river[""].plain, more
