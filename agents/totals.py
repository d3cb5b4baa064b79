"""The totals of an agent: one row of integers per partition, rewritten by every batch.

Summed over partitions, they are the totals of the whole system. They are on the shared changelogs,
so monitoring reads them instead of the tables behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from learners.arrays.types import Ints
from learners.join import AMENDMENTS, COUNTERS, TAKEN
from learners.local.learner import Predictions
from learners.theory.regret import local_regret_parts
from settings.model import Settings
from streams.engine.state.counts import CountsTable

LABELLED, INSTANCES, EXPLORED, FORGOTTEN, THIN, CUBES, LOST, PREDICTED = range(8)
"""Columns of a local learner's totals; from PREDICTED on there is one for each label.

LABELLED    labels learned
INSTANCES   instances decided
EXPLORED    of them, explored
FORGOTTEN   instances whose features were dropped because no label came
THIN        of the instances, decided by a rule with fewer than FEW trials in the cube
CUBES       cubes that this partition has learned about, in all phases
LOST        estimated regret against the local oracle, in parts (`learners.theory.regret`)
PREDICTED   instances decided by predicted label; the rest are those without an opinion
"""
FEW = 10
"""Trials below which a cube is thin: with so few, the interval of an accuracy covers about half of
its range."""


_ONLY = np.zeros(1, np.int64)


def local_width(settings: Settings) -> int:
    """Return how many integers a local learner's totals have."""
    return PREDICTED + len(settings.labels)


class LocalTotals:
    """A local learner's totals as counted by its agent, in a table of one row."""

    def __init__(self, table: CountsTable, rules: int) -> None:
        self._table, self._rules = table, rules

    def read(self, column: int) -> int:
        """Return one of the totals."""
        return int(self._table.rows(_ONLY)[0, column])

    def count(self, column: int, amount: int) -> None:
        """Add to one of the totals."""
        if amount:
            self._table.bump(self._table.claim(_ONLY), column, amount)

    def decided(self, predictions: Predictions) -> None:
        """Count a batch of decisions."""
        row = np.zeros(self._table.width, np.int64)
        row[INSTANCES] = len(predictions.labels)
        row[EXPLORED] = predictions.choices.exploring.sum()
        row[THIN] = (predictions.choices.trials < FEW).sum()
        row[PREDICTED:] = np.bincount(
            predictions.labels[predictions.labels >= 0], minlength=len(row) - PREDICTED
        )
        columns = np.arange(len(row))
        self._table.bump(np.repeat(self._table.claim(_ONLY), len(row)), columns, row)

    def learned(self, counts: CountsTable, cells: Ints, rows: Ints) -> None:
        """Store the new rows of some cubes, and count what is new in them."""
        cubes, before = len(counts), counts.rows(cells)
        counts.put(cells, rows)
        self.count(CUBES, len(counts) - cubes)
        new, old = (local_regret_parts(table, self._rules).sum() for table in (rows, before))
        self.count(LOST, int(new - old))


WAITING = ("parked", "open", "diagnosed")
"""What the join holds: parked without a prediction, waiting for the diagnosis, for the label."""


@dataclass(frozen=True, slots=True)
class EnsembleTotals:
    """The ensemble learner's totals: the join's counters, what it holds, and its tally.

    The tally is `EnsembleLearner.tally`: disagreements, then diagnoses by label.
    """

    row: Ints

    @classmethod
    def width(cls, settings: Settings) -> int:
        """Return how many integers the row has."""
        return len(COUNTERS) + len(WAITING) + 1 + len(settings.labels)

    @classmethod
    def of(
        cls, counts: Mapping[str, int], sizes: Mapping[str, int], tally: Ints
    ) -> "EnsembleTotals":
        """Return the row of these totals."""
        totals = [counts[name] for name in COUNTERS] + [sizes[name] for name in WAITING]
        return cls(np.array([*totals, *tally.tolist()], np.int64))

    @property
    def counts(self) -> dict[str, int]:
        """The join's counters."""
        return dict(zip(COUNTERS, self.row.tolist(), strict=False))

    @property
    def waiting(self) -> dict[str, int]:
        """What the join holds now."""
        return dict(zip(WAITING, self.row[len(COUNTERS) :].tolist(), strict=False))

    @property
    def tally(self) -> Ints:
        """Disagreements, then diagnoses by label."""
        return self.row[len(COUNTERS) + len(WAITING) :]

    @property
    def disagreements(self) -> int:
        """Diagnoses whose learners did not all agree."""
        return int(self.tally[0])

    @property
    def predicted(self) -> Ints:
        """Diagnoses by label."""
        return self.tally[1:]


@dataclass(frozen=True, slots=True)
class AmendmentTotals:
    """What the ensemble learner counts of corrected labels, and what it holds for them.

    The row is the join's counters of corrections, then how many instances can be corrected, and the
    bytes that this takes.
    """

    WIDTH: ClassVar[int] = len(AMENDMENTS) + 2
    row: Ints

    @classmethod
    def of(cls, counts: Mapping[str, int], amendable: int, size: int) -> "AmendmentTotals":
        """Return the row of these totals."""
        return cls(np.array([*(counts[name] for name in AMENDMENTS), amendable, size], np.int64))

    @property
    def counts(self) -> dict[str, int]:
        """The join's counters of corrections."""
        return dict(zip(AMENDMENTS, self.row.tolist(), strict=False))

    @property
    def corrections(self) -> int:
        """How often a label that had been learned was amended, withdrawn, or given again."""
        return sum(self.counts[name] for name in TAKEN)

    @property
    def amendable(self) -> int:
        """How many labels can be corrected now."""
        return int(self.row[-2])

    @property
    def size(self) -> int:
        """How many bytes are kept for that."""
        return int(self.row[-1])


def summed(rows: Any, width: int) -> Ints:
    """Return the sum of some partitions' rows, zeros if there are none."""
    return np.asarray(np.sum([np.zeros(width, np.int64), *rows], axis=0))
