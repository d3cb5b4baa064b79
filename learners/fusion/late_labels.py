"""How late labels are, counted per context cube, and the learning rate and the bound they allow.

Labels come late and some never come. So a decision may be made in ignorance of losses that belong
to earlier decisions. Two labelled decisions, neither of which knew the other's loss, are a *blind
pair*; the number of such pairs, D, is what lateness costs, and nothing else about delays matters.
It is counted without knowing any order. Let decision x have known `seen_x` of the N losses there
are by now. Summed over all x, N - 1 - seen_x counts each pair once, because the earlier one never
knew the later one, and each blind pair twice. So

    D = N (N-1) / 2 - sum of seen_x

is exact however labels are shuffled, batched or counted by different partitions, and a decision
whose label never comes leaves no trace.

The learning rate is eta = sqrt(ln M / pace), `pace` = N + 1 + D/2 as the decision knows them: the
paper's N + 1 where nothing is late (here and below, D/2 is rounded up). The regret of Hedge,
against each expert, is then at most

    sqrt((N + D/2) ln M) + E/8 + min(drift, sqrt(E D)/2) + 2 late

E being the sum of the rates used, `drift` the sum of min(1, eta w / 4) with w the decisions that
waited for their labels at the time, and `late` the labelled instances on which an expert spoke only
after the decision. docs/theory.md has the proof. Where it is smaller, `regret_bounds` raises it to
2 sqrt((N + D/2) ln M) + 2 late, which is Theorem 2 if nothing is late.

State per cube: six integers, all sums but the last, which is a maximum. It keeps the rate from
rising where partitions learn of each other's labels in different orders.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from learners.arrays.shares import UNIT
from learners.arrays.tables import Rows, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.fusion.base import UNKNOWN

WIDTH = 6
RECORDED, SEEN, RATES, DRIFT, LATE, PEAK = range(WIDTH)
"""Columns of the table. RECORDED leaves out labels whose decision was kept without a basis."""


class Basis(NamedTuple):
    """What a decision was based on: the columns of `FusedPredictions.basis`.

    seen      labels that had been learned in its cube
    pace      the time that its learning rate was for
    waiting   earlier decisions whose labels had not come
    """

    seen: Ints
    pace: Ints
    waiting: Ints

    @classmethod
    def of(cls, rows: Ints) -> "Basis":
        """Return the columns of a basis."""
        return cls(*rows.T)

    def rows(self) -> Ints:
        """Return the basis as fused predictions have it."""
        return np.stack(self, axis=1)


class LateLabels:
    """Counts, per cube, how late labels came."""

    def __init__(self, experts: int, cubes: int | None) -> None:
        self.table = table_for(cubes, WIDTH)
        self._log_experts = float(np.log(experts))

    def pace(self, cells: Ints, labelled: Ints) -> Ints:
        """Return the time that the learning rate is for, given the labels learned in each cube."""
        rows = self.table.rows(cells)
        time = labelled + 1 + (blind_pairs(rows, labelled) + 1) // 2
        return np.asarray(np.maximum(time, rows[:, PEAK]))

    def learn(self, cells: Ints, basis: Ints, late: Bools) -> None:
        """Count labelled decisions, and whether an expert spoke too late for them."""
        if not len(cells):
            return
        grounds = Basis.of(basis)
        rates = np.ceil(UNIT * np.sqrt(self._log_experts / grounds.pace)).astype(np.int64)
        deltas = np.zeros((len(cells), self.table.width), np.int64)
        deltas[:, RECORDED] = 1
        deltas[:, SEEN] = grounds.seen
        deltas[:, RATES] = rates
        drift = np.minimum(UNIT, -(-rates * grounds.waiting // 4))
        deltas[:, DRIFT] = np.where(grounds.waiting == UNKNOWN, UNIT, drift)
        deltas[:, LATE] = late
        self._add(cells, deltas, grounds.pace)

    def _add(self, cells: Ints, deltas: Ints, pace: Ints) -> None:
        """Add to the rows of cells, and raise their peaks; cells are few, so each is read once."""
        if (cells == cells[0]).all():
            rows = self.table.rows(cells[:1])
            rows += deltas.sum(axis=0)
            rows[0, PEAK] = max(rows[0, PEAK], pace.max())
            self.table.put(cells[:1], rows)
            return
        distinct, which = np.unique(cells, return_inverse=True)
        rows = self.table.rows(distinct)
        np.add.at(rows, which, deltas)
        np.maximum.at(rows[:, PEAK], which, pace)
        self.table.put(distinct, rows)


def pooled_counts(rows: Rows) -> Rows:
    """Return what several partitions counted, (P, n, 6), as one."""
    pooled = rows.sum(axis=0)
    pooled[:, PEAK] = rows[:, :, PEAK].max(axis=0)
    return np.asarray(pooled)


def blind_pairs(rows: Ints, labelled: Ints) -> Ints:
    """Return D of each cube; labels that were not recorded count as if none was late."""
    recorded = rows[:, RECORDED]
    pairs = recorded * (recorded - 1) // 2 + recorded * (labelled - recorded)
    return np.asarray(np.maximum(pairs - rows[:, SEEN], 0))


def regret_bounds(rows: Ints, labelled: Ints, experts: int, *, alone: bool = True) -> Floats:
    """Bound the regret of Hedge against each expert, cube by cube; nan where it was not counted.

    alone   whether one partition makes all decisions, so that `waiting` has them all

        >>> punctual = np.array([[100, 4950, 0, 0, 0, 100]])
        >>> regret_bounds(punctual, np.array([100]), 3).round(1).tolist()
        [21.0]
    """
    pairs = blind_pairs(rows, labelled)
    root = np.sqrt((labelled + (pairs + 1) // 2) * np.log(experts))
    rates, drift = rows[:, RATES] / UNIT, rows[:, DRIFT] / UNIT
    blind = np.sqrt(rates * pairs) / 2.0
    certain = root + rates / 8.0 + (np.minimum(drift, blind) if alone else blind)
    bound = np.maximum(2.0 * root, certain) + 2.0 * rows[:, LATE]
    return np.where(rows[:, RECORDED] == labelled, bound, np.nan)


def bound_at_delay(labelled: float, experts: int, delay: float, *, alone: bool = True) -> float:
    """Bound the regret when each label is known `delay` labelled decisions late, for planning.

    It is at least what `regret_bounds` has for such a stream: rates fall as labels come, so each
    stretch of decisions, one percent as long as what came before, counts with its first rate.

        >>> round(bound_at_delay(10_000, 2, 0)), round(bound_at_delay(10_000, 2, 10))
        (167, 408)
        >>> round(bound_at_delay(10_000, 2, 10, alone=False))
        1614
    """
    log_experts = float(np.log(experts))
    behind = min(delay, labelled)
    root = sqrt((labelled + _pairs_at(labelled, behind) / 2.0 + 0.5) * log_experts)
    if not behind:
        return 2.0 * sqrt(labelled * log_experts)
    after = labelled - behind
    stretches = np.geomspace(1.0, max(after, 1.0), 2 + int(100.0 * log(max(after, 1.0))))
    known = np.concatenate([[0.0], np.unique(np.floor(stretches[stretches < after]))])
    pace = known + 1.0 + np.floor(_pairs_at(known, behind) / 2.0)
    # Before the first label comes, `behind` decisions are made at the first rate.
    rate = np.append(np.sqrt(log_experts / pace) + 1.0 / UNIT, sqrt(log_experts))
    often = np.append(np.diff(known, append=after), behind)
    rates, drift = often @ rate, often @ np.minimum(1.0, rate * behind / 4.0 + 1.0 / UNIT)
    blind = sqrt(rates * _pairs_at(labelled, behind)) / 2.0
    return float(max(2.0 * root, root + rates / 8.0 + (min(drift, blind) if alone else blind)))


def _pairs_at(labelled: Any, behind: float) -> Any:
    """Return D after so many labels, each of which came `behind` late."""
    first = np.minimum(labelled, behind + 1.0)
    return first * (first - 1.0) / 2.0 + behind * (labelled - first)
