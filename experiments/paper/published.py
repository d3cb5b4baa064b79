"""The paper's printed figures, for comparison only: nothing is computed from them."""

from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

from experiments.paper.rates import METRICS, Rates
from experiments.report.result import Row

PAPER_RUNS = 50


@cache
def published() -> dict[str, Any]:
    """Return all figures, as transcribed from the paper."""
    import orjson

    data: dict[str, Any] = orjson.loads(
        files("experiments.paper").joinpath("published.json").read_bytes()
    )
    return data


COMPARED = ["method", *(f"{m}{c}" for m in METRICS for c in (" paper", "", " ±", " Δ/se")), "h"]
"""Columns of `compared`: for each metric the paper's, ours, our standard error, the difference."""


def compared(
    name: str, paper: list[float] | None, ours: Rates, h: float | str, sd: list[float] | None = None
) -> Row:
    """Return a table row that compares our rates with the paper's.

    The difference is in standard errors: ours, and also the paper's where it prints deviations.
    """
    row: Row = [name]
    for k in range(len(METRICS)):
        mean, se = float(ours.mean[k]), float(ours.se[k])
        if paper is None:
            row += [None, mean, se, None]
            continue
        se_of_both = sqrt(se**2 + (sd[k] ** 2 / PAPER_RUNS if sd else 0.0))
        row += [paper[k], mean, se, (mean - paper[k]) / se_of_both if se_of_both else None]
    return [*row, h]
