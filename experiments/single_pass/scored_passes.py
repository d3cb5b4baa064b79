"""Runs our methods and River's in single passes, scored at plain and tuned thresholds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.paper.rates import Rates, rates
from experiments.process_pool import spread
from experiments.single_pass.fused_passes import LIMIT, Pass, at_limit, fuse, truths
from experiments.single_pass.local_passes import Task, listen
from experiments.single_pass.methods import RECIPES, Ours
from experiments.single_pass.orders import Order
from experiments.single_pass.river_peers import river_pass, stacked_pass
from learners.arrays.types import Bools, Floats

Tick = Callable[[], object]


@dataclass(frozen=True)
class Score:
    """A method's rates at its plain threshold, and at FNR <= 3 % if that can be reached.

    errors, limited_errors   (P, R) whether each patient was misdiagnosed in each order, in percent
    """

    plain: Rates
    limited: Rates | None
    errors: Floats
    limited_errors: Floats | None = None


def our_scores(
    tasks: Sequence[Task], orders: Sequence[Order], methods: Mapping[str, Ours], tick: Tick
) -> dict[str, Score]:
    """Run our methods: the LLs of each recipe once, then every fusion mode on their output."""
    data = orders[0].data
    prefer = data.positive or 0
    scores = {}
    for recipe in dict.fromkeys(method.recipe for method in methods.values()):
        jobs = [replace(task, recipe=RECIPES[recipe]) for task in tasks]
        heard = spread(listen, jobs, tick=tick)
        for name, method in methods.items():
            if method.recipe == recipe:
                maker = method.maker(len(orders[0].columns), data.classes, prefer)
                scores[name] = scored(fuse(maker, heard, orders), orders)
                tick()
    return scores


def scored(scored_pass: Pass, orders: Sequence[Order]) -> Score:
    """Return a pass's rates."""
    truth = truths(orders)
    plain, errors = (
        rates(scored_pass.labels, truth),
        by_patient(scored_pass.labels != truth, orders),
    )
    if orders[0].data.positive is None:
        return Score(plain, None, errors)
    limited = at_limit(scored_pass, truth, LIMIT)
    # Calling every patient ill also gives no misses, but does not count as reaching the limit.
    if limited is None or limited[0].mean[1] > 99.0:
        return Score(plain, None, errors)
    limited_labels = (scored_pass.odds >= limited[1]).astype(np.int64)
    return Score(plain, limited[0], errors, by_patient(limited_labels != truth, orders))


def by_patient(wrong: Bools, orders: Sequence[Order]) -> Floats:
    """Return errors (N, R) in the order of arrival as (P, R), patient by patient, in percent."""
    placed = np.empty(wrong.shape)
    for r, order in enumerate(orders):
        placed[order.patients, r] = 100.0 * wrong[:, r]
    return placed


def river_scores(
    tasks: Sequence[Task], orders: Sequence[Order], peers: Sequence[str], tick: Tick
) -> dict[str, Score]:
    """Run River's classifiers."""
    scores = {}
    for name in peers:
        parts = spread(river_pass, [(task, name) for task in tasks], tick=tick)
        scores[name] = scored(stacked_pass(parts), orders)
    return scores
