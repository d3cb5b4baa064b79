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
    refined = {name: _between(rates_by_h, limit, refine) for name, rates_by_h in tried.items()}
    _record(tried, {name: values for name, values in refined.items() if len(values)}, evaluate)
    return {name: choose(rates_by_h, limit) for name, rates_by_h in tried.items()}


def _record(
    tried: dict[str, dict[float, Rates]], values: dict[str, Floats], evaluate: Evaluate
) -> None:
    if values:
        for name, rates in evaluate(values).items():
            tried[name].update(zip(values[name].tolist(), rates, strict=True))


def _between(rates_by_h: dict[float, Rates], limit: float, refine: int) -> Floats:
    """Return values between the last h whose FNR is above the limit and the next one."""
    values = sorted(rates_by_h)
    above = [h for h in values if rates_by_h[h].mean[2] > limit]
    if refine == 0 or not above or above[-1] == values[-1]:
        return np.empty(0)
    below = above[-1]
    after = values[values.index(below) + 1]
    return np.geomspace(below, after, refine + 2)[1:-1]


def choose(rates_by_h: dict[float, Rates], limit: float = LIMIT) -> Tuned:
    """Return the h with the lowest PER below the limit, or else the one nearest to the limit."""
    fair = [h for h in rates_by_h if rates_by_h[h].mean[2] <= limit]
    if fair:
        best = min(fair, key=lambda h: (rates_by_h[h].mean[0], h))
    else:
        best = min(rates_by_h, key=lambda h: (rates_by_h[h].mean[2], rates_by_h[h].mean[0]))
    return Tuned(best, rates_by_h[best], bool(fair), rates_by_h)


def just_below(rates_by_h: dict[float, Rates], limit: float = LIMIT) -> Tuned:
    """Return the h whose FNR is nearest to the limit from below, as the paper chooses it."""
    fair = [h for h in rates_by_h if rates_by_h[h].mean[2] <= limit]
    if not fair:
        return choose(rates_by_h, limit)
    best = max(fair, key=lambda h: (rates_by_h[h].mean[2], -rates_by_h[h].mean[0]))
    return Tuned(best, rates_by_h[best], True, rates_by_h)
