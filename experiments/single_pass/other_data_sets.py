"""Single passes over other data sets: several classes, categories, more instances."""

from collections.abc import Callable

from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.single_pass.bootstrap import Gap, gap
from experiments.single_pass.local_passes import Task
from experiments.single_pass.methods import BOUNDED, FIRM, OURS, PROPOSED, Ours
from experiments.single_pass.orders import REPORTED
from experiments.single_pass.river_peers import BEST, DEFAULT, ENSEMBLES
from experiments.single_pass.scored_passes import our_scores, river_scores

Tick = Callable[[], object]
METHODS = {
    **{
        name: OURS[name]
        for name in (
            PROPOSED,
            BOUNDED,
            "additive, stack",
            "kdi, stack",
            "cells that split, stack",
        )
    },
    "additive and cells that split, stack": Ours("additive and cells", "stack", FIRM),
}
PEERS = (BEST, DEFAULT, *ENSEMBLES)
SETS = {"phishing": 5, "flares": 5, "segments": 2, "loans": 1}
"""Data sets and the number of orders of each: large ones take longer and vary less."""


def others(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Run our methods and River's on the other data sets."""
    sets = {"flares": 1} if quick else {name: min(n, count) for name, n in SETS.items()}
    figures: dict[str, float] = {}
    rows: list[Row] = []
    columns: dict[str, dict[str, float]] = {}
    gaps: dict[str, Gap] = {}
    for name, orders_wanted in sets.items():
        tasks = [Task(name, seed, number) for number in range(orders_wanted)]
        orders = [task.order() for task in tasks]
        scores = our_scores(tasks, orders, METHODS, tick)
        scores |= river_scores(tasks, orders, (BEST, DEFAULT) if quick else PEERS, tick)
        gaps[name] = gap(scores[PROPOSED].errors, scores[BEST].errors)
        figures |= gaps[name].figures(f"{name}.gap")
        columns[name] = {method: float(score.plain.mean[0]) for method, score in scores.items()}
        data = orders[0].data
        shape = f"{len(data.rows)} x {len(data.features)}, {data.classes} classes"
        for method, score in scores.items():
            figures[f"{name}.{method}.PER"] = float(score.plain.mean[0])
            se = float(score.plain.se[0]) if orders_wanted > 1 else None
            rows.append([name, shape, method, columns[name][method], se, orders_wanted])
    return Result(
        name="others",
        title="Single pass: other data",
        settings={"orders": sets, "seed": seed, "local learners": 3},
        figures=figures,
        tables=[Table("PER (percent)", ["data", "size", "method", "PER", "±", "orders"], rows)],
        charts=[_chart(columns)],
        notes=[
            (
                "Nothing was chosen on these data: our settings and those of River's logistic"
                " regression were chosen on WDBC, from the same number of settings on the same"
                " orders. River's other classifiers have their default settings."
            ),
            *(f"{name}: {PROPOSED} and {BEST}, {lead}." for name, lead in gaps.items()),
        ],
    )


def _chart(columns: dict[str, dict[str, float]]) -> Chart:
    names = list(columns)
    methods = list(next(iter(columns.values())))
    series = [Series(m, list(names), [columns[name][m] for name in names]) for m in methods]
    return Chart("Other data: PER", "data set", "PER (percent)", series, kind="bar")
