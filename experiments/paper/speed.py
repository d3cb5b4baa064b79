"""Speed of the simulation: all runs in one batch, against the product's loop run by run."""

from collections.abc import Callable

from experiments.paper.scalar import race
from experiments.report.result import Result, Row, Table

ROUNDS = 3


def speed(
    count: int = 50, *, seed: int = 2017, quick: bool = False, tick: Callable[[], object] = int
) -> Result:
    """Time both on the same runs and keep the best round of each: load only ever slows them."""
    best: dict[str, float] = {}
    for _ in range(1 if quick else ROUNDS):
        timed = race(count, steps=100 if quick else 300, seed=seed)
        best = {name: max(best.get(name, 0.0), value) for name, value in timed.items()}
        tick()
    best["ratio"] = best["lanes_per_s"] / best["scalar_per_s"]
    rows: list[Row] = [[name, value] for name, value in best.items()]
    return Result(
        name="speed",
        title="Speed of the simulation",
        settings={"runs": count, "seed": seed, "method": "three IUP learners and WM"},
        figures=best,
        tables=[Table("Patients per second", ["what", "value"], rows)],
        notes=[f"All runs in one batch are {best['ratio']:.0f} times as fast as one by one."],
    )
