"""Timing on noisy machines: rivals take turns, and the best round of each counts."""

from collections.abc import Callable, Mapping
from time import perf_counter


def race(
    rivals: Mapping[str, Callable[[], object]],
    rounds: int,
    tick: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Return the seconds of each rival's best round; `tick` is called after every turn.

    A neighbour's load only ever slows a round down, so the fastest round of each is the fairest
    figure, and taking turns gives all rivals the same chance of a quiet moment.
    """
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, rival in rivals.items():
            start = perf_counter()
            rival()
            best[name] = min(best[name], perf_counter() - start)
            tick()
    return best
