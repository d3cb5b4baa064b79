"""The ensemble's figures over the last labels, as the console and `hb status` show them.

    error      how often it is wrong
    miss       of the patients who have the positive label, the share given another (FNR)
    alarm      of all other patients, the share that is wrong: false alarms (FPR)

Each comes with the interval that `learners.theory.promises` allows. The error rate of always
answering the most frequent label stands beside them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.monitor.scores import Scores
from learners.arrays.types import Ints
from learners.scores.baseline import Baseline, baseline
from learners.theory.promises import window_interval
from settings.model import Settings


class Rate(NamedTuple):
    """A share of wrong answers among `cases`, with its interval; `value` is None without cases."""

    cases: int
    value: float | None
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class Recent:
    """Figures of the last `labels` labels; `usual` is the most frequent of them."""

    labels: int
    error: Rate
    miss: Rate
    alarm: Rate
    usual: str | None = None
    baseline: Baseline | None = None

    def report(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "labels": self.labels,
            **{name: list(getattr(self, name)) for name in ("error", "miss", "alarm")},
            "usual": self.usual,
            "usual_error": None if self.baseline is None else self.baseline.error,
        }


def recent(settings: Settings, scores: Scores) -> Recent:
    """Return the figures of the last labels."""
    K = len(settings.labels)
    counts = np.zeros((K, K), np.int64) if scores.window is None else scores.window
    positive = list(settings.labels).index(settings.positive)
    totals, right = counts.sum(axis=1), np.diagonal(counts)
    negative = np.arange(K) != positive
    cases = np.array([totals.sum(), totals[positive], totals[negative].sum()])
    hits = np.array([right.sum(), right[positive], right[negative].sum()])
    against = baseline(counts)
    error, miss, alarm = _rates(cases, hits)
    return Recent(
        int(totals.sum()),
        error,
        miss,
        alarm,
        usual=None if against is None else settings.labels[against.label],
        baseline=against,
    )


def _rates(cases: Ints, hits: Ints) -> list[Rate]:
    low, high = window_interval(cases, hits)
    return [
        Rate(int(n), float((n - hit) / n), 1.0 - float(up), 1.0 - float(down))
        if n
        else Rate(0, None)
        for n, hit, down, up in zip(cases, hits, low, high, strict=True)
    ]
