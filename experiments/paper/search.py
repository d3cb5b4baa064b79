"""The search for the hyper-parameter: FNR just below the limit, as the paper reports it.

The paper moves h by hand until the FNR, averaged over the 50 runs, is "just below 3 %". Here:

1. every method runs on a coarse grid of h, with the same runs for all values;
2. between the last value above the limit and the first below it, four more values are tried;
3. of the values tried with a mean FNR <= 3 %, the one with the lowest mean PER is chosen.

This uses the true labels of the reported runs themselves, as the paper does; that is impossible on
a live stream (see `learners/assessment/referral.py` for what can be done there).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.paper.rates import Rates
from learners.arrays.types import Floats

LIMIT = 3.0
REFINE = 4
GRID = np.geomspace(0.5, 40.0, 9)

Evaluate = Callable[[Mapping[str, Floats]], Mapping[str, list[Rates]]]
"""Takes the values of h to try for each method, and returns one `Rates` per value."""


@dataclass(frozen=True)
class Tuned:
    """A method at its best h; `reached` is False if no value kept the FNR below the limit."""

    h: float
    rates: Rates
    reached: bool
    tried: dict[float, Rates]


def tune(
    names: Sequence[str],
    evaluate: Evaluate,
    grid: Floats = GRID,
    *,
    limit: float = LIMIT,
    refine: int = REFINE,
) -> dict[str, Tuned]:
    """Run the search for every named method."""
    tried: dict[str, dict[float, Rates]] = {name: {} for name in names}
    _record(tried, dict.fromkeys(names, grid), evaluate)
    more = {name: _between(found, limit, refine) for name, found in tried.items()}
    _record(tried, {name: values for name, values in more.items() if len(values)}, evaluate)
    return {name: choose(found, limit) for name, found in tried.items()}


def _record(
    tried: dict[str, dict[float, Rates]], values: dict[str, Floats], evaluate: Evaluate
) -> None:
    if values:
        for name, rates in evaluate(values).items():
            tried[name].update(zip(values[name].tolist(), rates, strict=True))


def _between(found: dict[float, Rates], limit: float, refine: int) -> Floats:
    """Return values between the last h whose FNR is above the limit and the next one."""
    values = sorted(found)
    above = [h for h in values if found[h].mean[2] > limit]
    if refine == 0 or not above or above[-1] == values[-1]:
        return np.empty(0)
    last = above[-1]
    after = values[values.index(last) + 1]
    return np.geomspace(last, after, refine + 2)[1:-1]


def choose(found: dict[float, Rates], limit: float = LIMIT) -> Tuned:
    """Return the h with the lowest PER below the limit, or else the one nearest to the limit."""
    fair = [h for h in found if found[h].mean[2] <= limit]
    if fair:
        best = min(fair, key=lambda h: (found[h].mean[0], h))
    else:
        best = min(found, key=lambda h: (found[h].mean[2], found[h].mean[0]))
    return Tuned(best, found[best], bool(fair), found)


def just_below(found: dict[float, Rates], limit: float = LIMIT) -> Tuned:
    """Return the h whose FNR is nearest to the limit from below, as the paper chooses it."""
    fair = [h for h in found if found[h].mean[2] <= limit]
    if not fair:
        return choose(found, limit)
    best = max(fair, key=lambda h: (found[h].mean[2], -found[h].mean[0]))
    return Tuned(best, found[best], True, found)
