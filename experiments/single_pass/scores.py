"""Runs our methods and River's in single passes, scored at plain and tuned thresholds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.paper.rates import Rates, rates
from experiments.process_pool import spread
from experiments.single_pass.locals import Task, listen
from experiments.single_pass.methods import RECIPES, Ours
from experiments.single_pass.orders import Order
from experiments.single_pass.passes import LIMIT, Pass, at_limit, fuse, truths
from experiments.single_pass.river_peers import river_pass, stacked_pass

Tick = Callable[[], object]


@dataclass(frozen=True)
class Score:
    """A method's rates at its plain threshold, and at FNR <= 3 % if that can be reached."""

    plain: Rates
    limited: Rates | None


def our_scores(
    tasks: Sequence[Task], orders: Sequence[Order], methods: Mapping[str, Ours], tick: Tick
) -> dict[str, Score]:
    """Run our methods: the LLs of each recipe once, then every fusion mode on their output."""
    data = orders[0].data
    prefer = data.positive or 0
    made = {}
    for recipe in dict.fromkeys(method.recipe for method in methods.values()):
        jobs = [replace(task, recipe=RECIPES[recipe]) for task in tasks]
        heard = spread(listen, jobs, tick=tick)
        for name, method in methods.items():
            if method.recipe == recipe:
                maker = method.maker(len(orders[0].columns), data.classes, prefer)
                made[name] = scored(fuse(maker, heard, orders), orders)
                tick()
    return made


def scored(one: Pass, orders: Sequence[Order]) -> Score:
    """Return a pass's rates."""
    truth = truths(orders)
    if orders[0].data.positive is None:
        return Score(rates(one.labels, truth), None)
    limited = at_limit(one, truth, LIMIT)
    # Calling every patient ill also gives no misses, but does not count as reaching the limit.
    if limited is not None and limited[0].mean[1] > 99.0:
        limited = None
    return Score(rates(one.labels, truth), limited[0] if limited else None)


def river_scores(
    tasks: Sequence[Task], orders: Sequence[Order], peers: Sequence[str], tick: Tick
) -> dict[str, Score]:
    """Run River's classifiers."""
    made = {}
    for name in peers:
        parts = spread(river_pass, [(task, name) for task in tasks], tick=tick)
        made[name] = scored(stacked_pass(parts), orders)
    return made
