"""The single-pass protocol: every patient once, predicted before its label.

Memory does not help here, so this is what a user of a diagnosis system meets. Our methods split the
features among three local learners (LLs) that share nothing but what they send; River's classifiers
see all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.paper.lanes import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.one_stage import FINE
from experiments.paper.protocol import Runs
from experiments.paper.rates import Rates, rates
from experiments.paper.search import choose
from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.stream.locals import Recipe, Task, listen
from experiments.stream.orders import REPORTED, Order
from experiments.stream.passes import LIMIT, Pass, at_limit, fuse, truths
from experiments.stream.river_peers import PEERS, river_pass, stacked_pass
from experiments.workers import spread
from learners.fusion import Fusion
from learners.fusions import make_fusion
from learners.iup import Feedback

Tick = Callable[[], object]
QUICK_ORDERS = 2


@dataclass(frozen=True)
class Ours:
    """One of our methods: a recipe for the LLs and a fusion mode."""

    recipe: str
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def maker(self, learners: int, classes: int, prefer: int) -> Callable[[int], Fusion]:
        """Return what makes the fusion rule for a number of cubes."""

        def make(cubes: int) -> Fusion:
            return make_fusion(
                self.mode, learners, classes, cubes=cubes, prefer=prefer, **self.options
            )

        return make


BAYES = {"kind": "bayes"}
RECIPES = {
    "kdi": Recipe(),
    "bayes": Recipe(rules=(BAYES,)),
    "fourier": Recipe(rules=({**BAYES, "fourier": 60, "spread": 0.3},)),
    "cubes": Recipe(
        rules=(
            {"kind": "constant", "label": "benign", "name": "benign"},
            {"kind": "constant", "label": "malignant", "name": "malignant"},
            BAYES,
        ),
        cuts=2,
    ),
}
OURS = {
    "kdi, stack": Ours("kdi", "stack"),
    "kdi, odds": Ours("kdi", "odds"),
    "kdi, odds, small-loss rate": Ours("kdi", "odds", {"rate": "small-loss"}),
    "kdi, committee of fusions": Ours("kdi", "committee"),
    "kdi, confidence votes": Ours("kdi", "confidence"),
    "kdi, WM": Ours("kdi", "wm"),
    "kdi, majority": Ours("kdi", "majority"),
    "bayes with Fourier features, stack": Ours("fourier", "stack"),
    "bayes, stack": Ours("bayes", "stack"),
    "bayes, WM": Ours("bayes", "wm"),
    "bayes and constants in cubes with back-off, WM": Ours("cubes", "wm"),
}
PAPER = {
    "paper's IUP, bandit, WM": LocalSettings(),
    "paper's IUP, full feedback, WM": LocalSettings(feedback=Feedback.FULL, exploration=0.0),
}


@dataclass(frozen=True)
class Score:
    """A method at its plain threshold, and at FNR <= 3 % if that can be reached."""

    plain: Rates
    limited: Rates | None


def single_pass(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """All methods on WDBC."""
    count = min(count, QUICK_ORDERS) if quick else count
    peers = PEERS[:3] if quick else PEERS
    tasks = [Task("wdbc", seed, number) for number in range(count)]
    orders = [task.order() for task in tasks]
    scores = our_scores(tasks, orders, OURS, tick)
    scores |= paper_scores(orders)
    scores |= river_scores(tasks, orders, peers, tick)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    for name, score in sorted(scores.items(), key=lambda item: item[1].plain.mean[0]):
        figures |= score.plain.figures(name)
        if score.limited is not None:
            figures[f"{name}.PER at FNR<=3"] = float(score.limited.mean[0])
        rows.append(_row(name, score))
    return Result(
        name="single",
        title="Single pass: every patient once",
        settings={"orders": count, "seed": seed, "local learners": 3, "data": "WDBC"},
        figures=figures,
        tables=[Table("Single pass over WDBC (percent)", COLUMNS, rows)],
        charts=[_chart(scores)],
        notes=_notes(scores),
    )


COLUMNS = [
    "method", "features", "PER", "±", "FPR", "FNR", "PER at FNR <= 3", "±", "FPR at FNR <= 3",
]  # fmt: skip


def _row(name: str, score: Score) -> Row:
    sees = "all 30" if name.startswith("River") else "10 per LL"
    per, fpr, fnr = score.plain.mean.tolist()
    row: Row = [name, sees, per, float(score.plain.se[0]), fpr, fnr]
    if score.limited is None:
        return [*row, None, None, None]
    limited = score.limited
    return [*row, float(limited.mean[0]), float(limited.se[0]), float(limited.mean[1])]


def our_scores(
    tasks: Sequence[Task], orders: Sequence[Order], methods: Mapping[str, Ours], tick: Tick
) -> dict[str, Score]:
    """Run our methods: the LLs of each recipe once, and every fusion over what they said."""
    data = orders[0].data
    prefer = data.positive or 0
    made = {}
    for recipe in dict.fromkeys(method.recipe for method in methods.values()):
        jobs = [_with(task, RECIPES[recipe]) for task in tasks]
        heard = spread(listen, jobs, tick=tick)
        for name, method in methods.items():
            if method.recipe == recipe:
                maker = method.maker(len(orders[0].columns), data.classes, prefer)
                made[name] = scored(fuse(maker, heard, orders), orders)
                tick()
    return made


def _with(task: Task, recipe: Recipe) -> Task:
    return Task(task.data, task.seed, task.number, recipe, task.learners, task.flipped)


def scored(one: Pass, orders: Sequence[Order]) -> Score:
    """Return a pass's rates."""
    truth = truths(orders)
    if orders[0].data.positive is None:
        return Score(rates(one.labels, truth), None)
    limited = at_limit(one, truth, LIMIT)
    # A method that calls everybody ill also has no misses; that is no way to reach the limit.
    if limited is not None and limited[0].mean[1] > 99.0:
        limited = None
    return Score(rates(one.labels, truth), limited[0] if limited else None)


def paper_scores(orders: Sequence[Order]) -> dict[str, Score]:
    """Run the paper's learners, with h tuned in hindsight for the limit."""
    runs = as_runs(orders)
    made = {}
    for name, settings in PAPER.items():
        votes = simulate_learners(runs, settings, np.append(FINE, 1.0))
        maker = Ours("", "wm").maker(settings.learners, 2, 1)
        fused = simulate_fusion(maker, runs, votes).labels
        each = [rates(fused[:, k], runs.truth) for k in range(fused.shape[1])]
        tuned = choose(dict(zip(FINE.tolist(), each[:-1], strict=True)))
        made[name] = Score(each[-1], tuned.rates if tuned.reached else None)
    return made


def as_runs(orders: Sequence[Order]) -> Runs:
    """Return single passes as runs of the paper's simulator."""
    patients = np.stack([order.patients for order in orders])
    return Runs(
        data=orders[0].data,
        train=patients[:, :0],
        test=patients,
        draws=patients,
        order=np.stack([np.concatenate(order.columns) for order in orders]),
        seeds=np.stack([order.seeds for order in orders]),
        told=np.stack([order.told for order in orders]),
        silent=np.zeros(patients.shape, np.bool_),
    )


def river_scores(
    tasks: Sequence[Task], orders: Sequence[Order], peers: Sequence[str], tick: Tick
) -> dict[str, Score]:
    """Run River's classifiers."""
    made = {}
    for name in peers:
        parts = spread(river_pass, [(task, name, None) for task in tasks], tick=tick)
        made[name] = scored(stacked_pass(parts), orders)
    return made


def _chart(scores: Mapping[str, Score]) -> Chart:
    names = sorted(scores, key=lambda name: scores[name].plain.mean[0])
    limited = [scores[name].limited for name in names]
    return Chart(
        "Single pass: PER by method",
        "method",
        "PER (percent)",
        [
            Series(
                "plain threshold",
                names,
                [float(scores[name].plain.mean[0]) for name in names],
                [float(scores[name].plain.se[0]) for name in names],
            ),
            Series("FNR <= 3 %", names, [None if r is None else float(r.mean[0]) for r in limited]),
        ],
        kind="bar",
    )


def _notes(scores: Mapping[str, Score]) -> list[str]:
    ours = min((n for n in scores if n in OURS), key=lambda n: scores[n].plain.mean[0])
    river = min((n for n in scores if n in PEERS), key=lambda n: scores[n].plain.mean[0])
    a, b = scores[ours].plain, scores[river].plain
    paired = a.per_run[0] - b.per_run[0]
    se = float(paired.std(ddof=1) / np.sqrt(len(paired))) if len(paired) > 1 else float("nan")
    notes = [
        (
            f"Best of ours: {ours}, {a.mean[0]:.2f}; best of River, with all features: {river},"
            f" {b.mean[0]:.2f}. Difference {paired.mean():+.2f}, standard error {se:.2f} (paired)."
        ),
        (
            "The threshold for FNR <= 3 % is chosen in hindsight, for all methods alike: it"
            " compares how they rank patients. Votes without confidence cannot be moved."
        ),
    ]
    limited = {n: s.limited for n, s in scores.items() if s.limited is not None}
    if limited:
        best = min(limited, key=lambda n: limited[n].mean[0])
        notes.append(f"At FNR <= 3 % the best is {best} with {limited[best].mean[0]:.2f}.")
    return notes
