"""Error rates per run, their mean and spread: PER over all, FPR over negatives, FNR over positives.

Rates are in percent, as in the paper. Tables show the mean over runs; `se` is its standard error,
the unit in which differences from the paper are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from learners.arrays.types import Bools, Floats, Ints

METRICS = ("PER", "FPR", "FNR")


@dataclass(frozen=True)
class Rates:
    """One method's rates: (3, R), in the order of METRICS, in percent."""

    per_run: Floats

    @property
    def mean(self) -> Floats:
        """(3,) means over the runs."""
        return np.asarray(np.nanmean(self.per_run, axis=1))

    @property
    def sd(self) -> Floats:
        """(3,) standard deviations over the runs."""
        return np.asarray(np.nanstd(self.per_run, axis=1, ddof=1 if self.runs > 1 else 0))

    @property
    def runs(self) -> int:
        """Return R."""
        return int(self.per_run.shape[1])

    @property
    def se(self) -> Floats:
        """(3,) standard errors of the means."""
        return self.sd / sqrt(self.runs)

    def figures(self, name: str) -> dict[str, float]:
        """Return `name.PER` and so on, and `name.PER se`, its standard error."""
        means = {f"{name}.{metric}": float(v) for metric, v in zip(METRICS, self.mean, strict=True)}
        return means | {f"{name}.PER se": float(self.se[0])}


def rates(labels: NDArray[np.int8] | Ints, truth: Ints, among: Bools | None = None) -> Rates:
    """Return the rates of (T, R) labels against (R, T) or (T, R) truth, or only `among` some.

    >>> labels = np.array([[1, 0], [0, 0], [1, 1], [0, 0]])
    >>> rates(labels, np.array([[1, 0, 0, 0], [1, 0, 1, 0]])).per_run.tolist()
    [[25.0, 25.0], [33.3..., 0.0], [0.0, 50.0]]
    """
    truth = truth.T if truth.shape != labels.shape else truth
    wrong = labels != truth
    counted = np.ones(truth.shape, np.bool_) if among is None else among
    groups = counted, counted & (truth == 0), counted & (truth == 1)
    with np.errstate(invalid="ignore"):
        per_run = [100.0 * (wrong & group).sum(axis=0) / group.sum(axis=0) for group in groups]
    return Rates(np.array(per_run))


def joined(parts: Sequence[Rates]) -> Rates:
    """Return the rates of several sets of runs as one."""
    return Rates(np.concatenate([part.per_run for part in parts], axis=1))


def hindsight(labels: NDArray[np.int8], truth: Ints) -> dict[str, Rates]:
    """Return Best, Average and Worst LL of (T, R, M) labels: ranked by each run's own PER."""
    by_learner = [rates(labels[:, :, i], truth).per_run for i in range(labels.shape[2])]
    stacked = np.stack(by_learner)  # (M, 3, R)
    runs = np.arange(stacked.shape[2])
    order = stacked[:, 0].argsort(axis=0, kind="stable")
    return {
        "Best LL": Rates(stacked[order[0], :, runs].T),
        "Average LL": Rates(stacked.mean(axis=0)),
        "Worst LL": Rates(stacked[order[-1], :, runs].T),
    }


def improvement(ours: float, theirs: float) -> float:
    """Return the paper's improvement ratio of A over B: (PM(B) - PM(A)) / PM(B).

    >>> round(improvement(2.96, 6.04), 2)
    0.51
    """
    return (theirs - ours) / theirs if theirs else float("nan")
