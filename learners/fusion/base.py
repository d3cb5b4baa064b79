"""What every fusion rule of the ensemble learner (EL) has in common.

A `Ballot` holds what the local learners (LLs) sent about a batch of instances, `FusedPredictions`
what the EL decided. A fusion rule decides from its state without changing it, and changes its state
only when labels come: so decisions may run ahead of labels, and an instance whose label never comes
leaves no trace (the paper: "when the label is missing, the EL does not update"). Time, where a rule
needs it, is the number of labelled instances.

Every rule keeps one row of state per context cube. Without contexts all instances are in cube 0.

An LL that sent nothing sleeps: it gets no weight, and the others share it. Which loss it takes
meanwhile is up to the rule (`hedge`: the EL's own).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from learners.arrays.shares import UNIT
from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import MISSING, Bools, Floats, Ints, Seeds
from learners.errors import LearnerError

Number = TypeVar("Number", bound=np.generic)

UNKNOWN = -1
"""A number that was not kept, or not given."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """What M local learners sent about a batch of n instances.

    labels      (n, M) label index each LL predicted, MISSING where it sent nothing
    seeds       (n,)   from the instance ids; the only source of randomness
    cells       (n,)   the EL's context cube
    exploring   (n, M) the LL says it explores
    accuracy    (n, M) the LL's estimate of its chosen rule's accuracy, nan where unknown
    log_odds    (n, M, K) log-odds of each of the K labels against the others, nan where not sent
    waiting     (n,)   earlier decisions of this EL whose labels have not come, or UNKNOWN
    """

    labels: Ints
    seeds: Seeds
    cells: Ints
    exploring: Bools
    accuracy: Floats
    log_odds: Floats
    waiting: Ints

    @classmethod
    def of(
        cls,
        labels: Ints,
        seeds: Seeds,
        *,
        classes: int,
        cells: Ints | None = None,
        exploring: Bools | None = None,
        accuracy: Floats | None = None,
        log_odds: Floats | None = None,
        waiting: Ints | None = None,
    ) -> "Ballot":
        """Build a ballot; what is not given is unknown (no context, exploiting, no confidence)."""
        n, learners = labels.shape
        ballot = cls(
            labels=labels,
            seeds=seeds,
            cells=_constant(np.int64(0), n) if cells is None else cells,
            exploring=_constant(np.False_, n, learners) if exploring is None else exploring,
            accuracy=_constant(np.float64(np.nan), n, learners) if accuracy is None else accuracy,
            log_odds=(
                _constant(np.float64(np.nan), n, learners, classes)
                if log_odds is None
                else log_odds
            ),
            waiting=_constant(np.int64(UNKNOWN), n) if waiting is None else waiting,
        )
        ballot._check(classes)
        return ballot

    def _check(self, classes: int) -> None:
        n, learners = self.labels.shape
        shapes = {
            "seeds": (self.seeds.shape, (n,)),
            "cells": (self.cells.shape, (n,)),
            "exploring": (self.exploring.shape, (n, learners)),
            "accuracy": (self.accuracy.shape, (n, learners)),
            "log_odds": (self.log_odds.shape, (n, learners, classes)),
            "waiting": (self.waiting.shape, (n,)),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise LearnerError(f"ballot: {name} has shape {shape}, expected {expected}")
        if n and not (self.labels.min() >= MISSING and self.labels.max() < classes):
            raise LearnerError(f"ballot: labels must lie in {MISSING}..{classes - 1}")

    @property
    def present(self) -> Bools:
        """(n, M): the LL sent a prediction."""
        return np.asarray(self.labels != MISSING)

    @property
    def heard(self) -> Bools:
        """(n,): at least one LL sent a prediction."""
        return np.asarray(self.present.any(axis=1))

    @property
    def classes(self) -> int:
        """Return K, the number of labels."""
        return int(self.log_odds.shape[2])

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Ints) -> "Ballot":
        """Return the ballot of some of the instances."""
        return Ballot(
            self.labels[rows],
            self.seeds[rows],
            self.cells[rows],
            _take(self.exploring, rows),
            _take(self.accuracy, rows),
            _take(self.log_odds, rows),
            _take(self.waiting, rows),
        )

    def without(self, asleep: Bools) -> "Ballot":
        """Return the ballot as it would be had the LLs in `asleep` (n, M) sent nothing."""
        return replace(
            self,
            labels=np.where(asleep, MISSING, self.labels),
            accuracy=_unless(asleep, self.accuracy),
            log_odds=_unless(asleep[:, :, None], self.log_odds),
        )


def _constant(value: Number, *shape: int) -> NDArray[Number]:
    """Return a read-only array of one value that takes no memory."""
    return np.broadcast_to(np.asarray(value), shape)


def unsent(values: Floats) -> bool:
    """Tell whether no LL sent this field: one stored nan stands for the whole array."""
    return not any(values.strides) and bool(np.isnan(values.flat[0]) if values.size else True)


def _take(array: NDArray[Number], rows: Ints) -> NDArray[Number]:
    if any(array.strides) or not array.size:
        return array[rows]
    return np.broadcast_to(array[(0,) * array.ndim], (len(rows), *array.shape[1:]))


def _unless(asleep: Bools, values: Floats) -> Floats:
    return values if unsent(values) else np.where(asleep, np.nan, values)


@dataclass(frozen=True, slots=True)
class FusedPredictions:
    """What the EL decided for a batch of n instances.

    labels    (n,)   the diagnosis, as a label index; MISSING only if no LL was present
    parts     (n, E) each expert's share of the decision, in whole parts: rows sum to UNIT exactly,
                     or to 0 if no LL was present. A chance, where a rule draws one expert
    votes     (n, E) each expert's label. The experts are the LLs, unless a rule has its own
    support   (n, K) how much speaks for each label: rows sum to one, or to 0 if no LL was present
    basis     (n, B) what the rule had learned when it decided, in integers of its own: `learn` gets
              them back. UNKNOWN where they were not kept; None if no row has any

    To learn, a rule reads `labels`, `votes`, `parts` and `basis`.
    """

    labels: Ints
    parts: Ints
    votes: Ints
    support: Floats
    basis: Ints | None = None

    @classmethod
    def recalled(
        cls, labels: Ints, parts: Ints, votes: Ints, basis: Ints | None = None
    ) -> "FusedPredictions":
        """Rebuild what was decided earlier from what was kept of it."""
        return cls(labels, parts, votes, np.zeros((len(labels), 0)), basis)

    @property
    def weights(self) -> Floats:
        """(n, E): the experts' shares as fractions."""
        return self.parts / UNIT

    def expected_loss(self, truth: Ints) -> Ints:
        """Return each instance's chance of error, in parts, were one expert drawn by its share.

        Summed over labelled instances, less the fewest errors of an expert times UNIT, this is the
        pseudo-regret of Theorem 2, exactly.
        """
        return np.asarray(np.where(self.votes != truth[:, None], self.parts, 0).sum(axis=1))

    def take(self, rows: Ints) -> "FusedPredictions":
        """Return those of some of the instances."""
        return FusedPredictions(
            self.labels[rows],
            self.parts[rows],
            self.votes[rows],
            self.support[rows],
            None if self.basis is None else self.basis[rows],
        )


class Fusion(ABC):
    """A fusion rule: decides at once, learns when labels come.

    learners    M, how many LLs there are
    classes     K, how many labels
    prefer      the label that wins a tie (the paper's experiments say "malignant on ties")
    """

    own_experts: ClassVar[bool] = False
    """Whether its experts are others than the LLs."""
    hears: Collection[str] = frozenset({"seeds", "exploring", "accuracy", "log_odds"})
    """What it reads of a ballot beside labels, cells and waiting; the rest may be left unknown."""

    def __init__(self, learners: int, classes: int, *, prefer: int = 0) -> None:
        if learners < 1:
            raise LearnerError("a fusion rule needs at least one local learner")
        if classes < 2:
            raise LearnerError("a fusion rule needs at least two labels")
        if not 0 <= prefer < classes:
            raise LearnerError(f"prefer must be a label index in 0..{classes - 1}, not {prefer}")
        self.learners = learners
        self.classes = classes
        self.prefer = prefer

    def decide(self, ballot: Ballot) -> FusedPredictions:
        """Fuse a batch. Reads the state, never changes it."""
        self._check(ballot)
        return self._decide(ballot)

    def learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints) -> None:
        """Take in the labels of instances decided earlier: `fused` is what was decided then.

        The ballot may hold predictions that came after the decision; they count as well.
        """
        self._check(ballot)
        if truth.shape != (len(ballot),) or fused.labels.shape != truth.shape:
            raise LearnerError(f"learn: expected {len(ballot)} labels and as many decisions")
        if not len(truth):
            return
        if truth.min() < 0 or truth.max() >= self.classes:
            raise LearnerError(f"learn: labels must lie in 0..{self.classes - 1}")
        self._learn(ballot, fused, truth)

    def recount(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, sign: int) -> None:
        """Take back what `learn` counted of these labels (`sign` -1), or count it again (+1).

        Integers are sums of what each label adds, whatever else was learned, so this is exact. Real
        numbers depend on all that was learned before: they cannot unlearn, and stay as they are.
        """
        cells = np.unique(ballot.cells)
        before = {name: table.rows(cells) for name, table in self.tables().items()}
        self.learn(ballot, fused, truth)
        for name, table in self.tables().items():
            rows = before[name]
            if table.dtype.kind == "i":
                rows = rows + sign * (table.rows(cells) - rows)
            table.put(cells, rows)

    @property
    def forgets(self) -> bool:
        """Whether all that was learned from a label can be taken back."""
        return all(table.dtype.kind == "i" for table in self.tables().values())

    def _check(self, ballot: Ballot) -> None:
        learners, classes = ballot.labels.shape[1], ballot.classes
        if (learners, classes) != (self.learners, self.classes):
            raise LearnerError(
                f"ballot of {learners} learners and {classes} labels given to a fusion rule"
                f" of {self.learners} and {self.classes}"
            )

    @abstractmethod
    def _decide(self, ballot: Ballot, /) -> FusedPredictions: ...

    @abstractmethod
    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None: ...

    @abstractmethod
    def tables(self) -> Mapping[str, CellTable]:
        """Return the state: one table per part, a row per context cube."""

    def pooled(self, _name: str, rows: Rows, /) -> Rows:
        """Return what P partitions learned, (P, n, width) rows of a table, as one: their sum."""
        return np.asarray(rows.sum(axis=0))

    def awake(self, _ballot: Ballot, fused: FusedPredictions, /) -> Bools:
        """(n, E): the expert took part in the decision."""
        return np.asarray(fused.votes >= 0)

    def experts(self, learners: Sequence[str]) -> list[str]:
        """Return the names of the rule's experts, given those of the LLs."""
        return list(learners)
