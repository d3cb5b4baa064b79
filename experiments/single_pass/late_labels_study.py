"""Single passes with late labels: ours beside River's, on medical and other data sets.

A label comes a number of patients later. Before the first label nothing can be known, so errors are
counted from the patient after it. Our learners fit one model together; how much they gain by
assuming that the others have changed along with them (`learners/rules/joint.py`) is shown by
leaving that out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from experiments.confidence.river_chances import CANDIDATES, river_chances
from experiments.confidence.streams import Stream
from experiments.process_pool import spread
from experiments.report.result import Result, Row, Table
from experiments.single_pass.bootstrap import gap
from experiments.single_pass.fused_passes import fuse
from experiments.single_pass.local_passes import Task, listen
from experiments.single_pass.methods import OURS, PROPOSED, RECIPES
from experiments.single_pass.orders import REPORTED, Order
from experiments.single_pass.scored_passes import by_patient
from learners.arrays.types import Bools, Floats

Tick = Callable[[], object]
LATE = 100
SETS = {
    "wdbc": 4, "biopsy": 4, "pima": 4, "pbc": 6, "colon": 3, "flchain": 2, "turnout": 2,
    "phishing": 3, "flares": 3, "wine": 6, "segments": 1, "loans, 2000": 2,
}  # fmt: skip
"""Data sets and the number of orders of each."""
AWARE, BLIND = "ours", "ours, opinions taken as they were"


def late(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Run both with labels at once and late, and compare order by order."""
    sets = {"pbc": 2} if quick else {name: min(n, count) for name, n in SETS.items()}
    figures: dict[str, float] = {}
    rows: list[Row] = []
    for name, orders in sets.items():
        for wait in (0, LATE):
            tasks = [Task(name, seed, number, late=wait) for number in range(orders)]
            _compare(name, tasks, figures, rows, tick)
    gained = [figures[f"{name}.late={LATE}.gain"] for name in sets]
    over = [figures[f"{name}.late={LATE}.over River"] for name in sets]
    figures |= {
        "gain_mean_points": float(np.mean(gained)),
        "gain_share": float(np.mean([gain > 0 for gain in gained])),
        "late_error_over_river_mean_points": float(np.mean(over)),
    }
    columns = [
        "data", "late", AWARE, BLIND, "River's best", "ours - River", "± over orders",
        "± over patients", "from", "to", "orders",
    ]  # fmt: skip
    return Result(
        name="late",
        title="Single pass: late labels",
        settings={"orders": sets, "seed": seed, "late": LATE, "ours": PROPOSED},
        figures=figures,
        tables=[Table("PER from the first patient after a label (percent)", columns, rows)],
        notes=[
            (
                f"With labels {LATE} late, taking the others to have changed along gains"
                f" {figures['gain_mean_points']:.2f} points on average, and on"
                f" {sum(gain > 0 for gain in gained)} of {len(gained)} data sets something."
            ),
            (
                'River\'s best is the best of five on that data set, chosen in hindsight. "From"'
                ' and "to" are the ends of a 95 % interval over the patients; where it spans 0,'
                " neither is ahead."
            ),
        ],
    )


def _compare(
    name: str, tasks: Sequence[Task], figures: dict[str, float], rows: list[Row], tick: Tick
) -> None:
    wait, key = tasks[0].late, f"{name}.late={tasks[0].late}"
    ours = {AWARE: _errors(tasks, tick, corrected=True)}
    if wait:
        ours[BLIND] = _errors(tasks, tick, corrected=False)
    parts = spread(_river, tasks, tick=tick)
    orders = [task.order() for task in tasks]
    river = {
        model: by_patient(np.stack([part[model] for part in parts], axis=1), orders)
        for model in CANDIDATES
    }
    counted = _counted(orders, wait)
    best = min(river.values(), key=lambda errors: float(errors[counted].mean()))
    apart = gap(ours[AWARE], best, counted=counted)
    means = {
        model: float(errors[counted].mean()) for model, errors in {**ours, "River": best}.items()
    }
    figures |= {f"{key}.{model}.PER": value for model, value in means.items()}
    figures |= apart.figures(f"{key}.over River")
    if wait:
        figures[f"{key}.gain"] = means[BLIND] - means[AWARE]
    rows.append(
        [name, wait, means[AWARE], means.get(BLIND), means["River"], apart.mean,
         apart.orders_se if len(tasks) > 1 else None, apart.patients_se, apart.low, apart.high,
         len(tasks)]
    )  # fmt: skip


def _counted(orders: Sequence[Order], wait: int) -> Bools:
    """Return (P, R): whether a patient came after the first label."""
    first = np.arange(len(orders[0].patients))[:, None] >= wait
    return by_patient(np.repeat(first, len(orders), axis=1), orders) > 0


def _errors(tasks: Sequence[Task], tick: Tick, *, corrected: bool) -> Floats:
    """Return whether each patient is misdiagnosed in each order, in percent: (P, R)."""
    recipe = replace(RECIPES[OURS[PROPOSED].recipe], corrected=corrected)
    heard = spread(listen, [replace(task, recipe=recipe) for task in tasks], tick=tick)
    orders = [task.order() for task in tasks]
    data = orders[0].data
    maker = OURS[PROPOSED].maker(len(orders[0].columns), data.classes, data.positive or 0)
    diagnosed = fuse(maker, heard, orders, tasks[0].late).labels
    wrong: Bools = diagnosed != np.stack([order.truth for order in orders], axis=1)
    return by_patient(wrong, orders)


def _river(task: Task) -> dict[str, Bools]:
    """Return where River's classifiers are wrong in one order."""
    order = task.order()
    n, K = len(order.patients), order.data.classes
    stream = Stream(order.data, order.patients, order.told, np.zeros((n, K)), n, task.late)
    return {
        name: np.asarray(chances.argmax(axis=1) != order.truth)
        for name, chances in river_chances(stream).items()
    }
