"""Online control of the false negative rate: h moves so that FNR stays at its target.

The paper tunes h offline, with the truth in hand. Here h follows the labels as they come. The
positive label is issued whenever its log-odds, cut to [-limit, limit], are at least -ln h; else the
best of the other labels. After each labelled positive

    caught    ln h <- ln h - step * target
    missed    ln h <- ln h + step * (1 - target)

so a miss pushes h up by as much as 1/target - 1 catches pull it down: in balance, the share of
misses is the target. This is adaptive conformal inference (I. Gibbs and E. Candès, "Adaptive
conformal inference under distribution shift", NeurIPS 2021) on the positives alone, a stochastic
approximation (H. Robbins and S. Monro, 1951) of the quantile of their scores.

Guarantee, for any sequence of instances, labels and scores, however they drift: when n positives
have been labelled, each before the next decision,

    |FNR - target| <= (2 limit + step) / (step n)

Proof: let b = ln h. After n labelled positives b_n - b_0 = step (misses - target n), so the left
side is |b_n - b_0| / (step n). While b > limit every instance is called positive, so b can only
fall; while b < -limit none is, so b can only rise. Between the two a label moves it by less than a
step. Hence b stays within a step of [-limit, limit], and |b_n - b_0| <= 2 limit + step if it starts
within the limits. If up to D positives wait for their labels at a time, b may run on for D more
steps: 2 limit + (1 + D) step. The guarantee is about FNR only: where scores do not tell positives
from negatives, the price is a high FPR.

State per context cube: labelled positives that were caught and missed, two integers. So their order
does not matter, the counts of several partitions add up, and a replay gives the same h. With
contexts each cube has its own h and its own guarantee; over all of them the bound is P times as
wide, P being the cubes that saw a positive.

The start matters at low counts: with `prior` p, ln h starts at p. The product's own control, on
ranks and for every label, needs neither step nor start (`learners/assessment/referral.py`); this
one is kept for the experiment that compares steps.
"""

from math import exp

import numpy as np

from learners.arrays.tables import table_for
from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError


class FnrControl:
    """The controller of one deployment.

    positive   index of the label that must not be missed
    target     the long-run FNR to keep
    step       how far ln h moves; large steps follow drift fast and swing more
    limit      scores count as log-odds within +-limit
    prior      ln h before the first label
    cubes      how many context cubes there are; None for more than can be listed
    """

    def __init__(
        self,
        positive: int,
        *,
        target: float = 0.03,
        step: float = 0.5,
        limit: float = 8.0,
        prior: float = 0.0,
        cubes: int | None = 1,
    ) -> None:
        checks = {
            "target must lie between 0 and 1": 0.0 < target < 1.0,
            "step must be above 0": 0.0 < step < np.inf,
            "limit must lie above 0 and up to 30": 0.0 < limit <= 30.0,
            "prior must lie within the limit": -limit <= prior <= limit,
            "positive must be a label index": positive >= 0,
        }
        for message, holds in checks.items():
            if not holds:
                raise LearnerError(f"FNR control: {message}")
        self.positive = positive
        self.target = target
        self.step = step
        self.limit = limit
        self.prior = prior
        self.table = table_for(cubes, 2)

    @property
    def caught(self) -> int:
        """Return the labelled positives that were diagnosed as such."""
        return int(self.table.items()[1][:, 0].sum())

    @property
    def missed(self) -> int:
        """Return the labelled positives that were not."""
        return int(self.table.items()[1][:, 1].sum())

    def log_h(self, cells: Ints) -> Floats:
        """Return ln h of each context cube, as its counts have it."""
        rows = self.table.rows(cells)
        moved = (1.0 - self.target) * rows[:, 1] - self.target * rows[:, 0]
        return np.asarray(self.prior + self.step * moved)

    def h(self, cell: int = 0) -> float:
        """Return h of a context cube, cut to what makes a difference."""
        log_h = float(self.log_h(np.array([cell]))[0])
        return exp(min(max(log_h, -self.limit), self.limit))

    def bound(self, positives: int | None = None, waiting: int = 0) -> float:
        """Return how far a cube's FNR can be from its target after so many labelled positives.

        `waiting` is the largest number of positives that waited for their labels at one time.
        Without `positives`, all that were counted are taken, as if in one cube.

            >>> round(FnrControl(1).bound(1000), 4)
            0.033
        """
        n = self.caught + self.missed if positives is None else positives
        return (2.0 * self.limit + (1 + waiting) * self.step) / (self.step * n) if n else 1.0

    def decide(self, labels: Ints, support: Floats, cells: Ints | None = None) -> Ints:
        """Return the labels to issue, given the EL's own and the labels' shares (n, K)."""
        cells = np.zeros(len(labels), np.int64) if cells is None else cells
        chance = np.clip(support[:, self.positive], 1e-300, 1.0)
        with np.errstate(divide="ignore"):
            odds = np.log(chance) - np.log1p(-chance)
        odds = np.clip(odds, -self.limit, self.limit)
        masked = support.copy()
        masked[:, self.positive] = -1.0
        issued = np.where(odds >= -self.log_h(cells), self.positive, masked.argmax(axis=1))
        return np.where(labels < 0, labels, issued)

    def learn(self, issued: Ints, truth: Ints, cells: Ints | None = None) -> None:
        """Count labelled positives by whether the issued label was right; silence is no miss."""
        cells = np.zeros(len(truth), np.int64) if cells is None else cells
        positives = (truth == self.positive) & (issued >= 0)
        hit = issued == self.positive
        deltas = np.stack([positives & hit, positives & ~hit], axis=1).astype(np.int64)
        self.table.add(cells, deltas)
