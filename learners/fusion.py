"""What every fusion rule of the ensemble learner (EL) has in common.

A `Ballot` holds what the local learners (LLs) said about a batch of instances, a `Verdict` what the
EL made of it. A fusion rule decides from its state without changing it, and changes its state only
when labels come: so decisions may run ahead of labels, and an instance whose label never comes
leaves no trace (the paper: "when the label is missing, the EL does not update").

Every rule keeps one row of state per context cube. Without contexts all instances are in cube 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from learners.errors import LearnerError
from learners.tables import CellTable
from learners.types import MISSING, Bools, Floats, Ints, Seeds


@dataclass(frozen=True, slots=True)
class Ballot:
    """What M local learners sent about a batch of n instances.

    labels      (n, M) label index each LL predicted, MISSING where it sent nothing
    seeds       (n,)   from the instance ids; the only source of randomness
    cells       (n,)   the EL's context cube
    exploring   (n, M) the LL says it explores
    accuracy    (n, M) the LL's estimate of its chosen rule's accuracy, nan where unknown
    log_odds    (n, M, K) log-odds of each of the K labels against the others, nan where not sent
    """

    labels: Ints
    seeds: Seeds
    cells: Ints
    exploring: Bools
    accuracy: Floats
    log_odds: Floats

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
    ) -> "Ballot":
        """Build a ballot; what is not given is unknown (no context, exploiting, no confidence)."""
        n, learners = labels.shape
        ballot = cls(
            labels=labels,
            seeds=seeds,
            cells=np.zeros(n, np.int64) if cells is None else cells,
            exploring=np.zeros((n, learners), np.bool_) if exploring is None else exploring,
            accuracy=np.full((n, learners), np.nan) if accuracy is None else accuracy,
            log_odds=np.full((n, learners, classes), np.nan) if log_odds is None else log_odds,
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
        }
        for name, (found, wanted) in shapes.items():
            if found != wanted:
                raise LearnerError(f"ballot: {name} has shape {found}, expected {wanted}")
        if n and not (self.labels.min() >= MISSING and self.labels.max() < classes):
            raise LearnerError(f"ballot: labels must lie in {MISSING}..{classes - 1}")

    @property
    def present(self) -> Bools:
        """(n, M): the LL sent a prediction."""
        return self.labels != MISSING

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Ints) -> "Ballot":
        """Return the ballot of some of the instances."""
        return Ballot(
            self.labels[rows],
            self.seeds[rows],
            self.cells[rows],
            self.exploring[rows],
            self.accuracy[rows],
            self.log_odds[rows],
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the EL decided for a batch of n instances.

    labels    (n,)   the diagnosis, as a label index; MISSING only if no LL was present
    weights   (n, E) the probability or vote share given to each expert; rows sum to one
    votes     (n, E) what each expert said. The experts are the LLs, unless a rule has its own
    """

    labels: Ints
    weights: Floats
    votes: Ints

    def expected_loss(self, truth: Ints) -> Floats:
        """Return the chance of error of each instance if one expert were drawn by `weights`."""
        return np.asarray((self.weights * (self.votes != truth[:, None])).sum(axis=1))

    def take(self, rows: Ints) -> "Verdict":
        """Return the verdict on some of the instances."""
        return Verdict(self.labels[rows], self.weights[rows], self.votes[rows])


class Fusion(ABC):
    """A fusion rule: decides at once, learns when labels come."""

    def __init__(self, learners: int, classes: int) -> None:
        if learners < 1:
            raise LearnerError("a fusion rule needs at least one local learner")
        if classes < 2:
            raise LearnerError("a fusion rule needs at least two labels")
        self.learners = learners
        self.classes = classes

    @abstractmethod
    def decide(self, ballot: Ballot) -> Verdict:
        """Fuse a batch. Reads the state, never changes it."""

    @abstractmethod
    def learn(self, ballot: Ballot, verdict: Verdict, truth: Ints) -> None:
        """Take in the labels of instances decided earlier: `verdict` is what was decided then."""

    @abstractmethod
    def tables(self) -> Mapping[str, CellTable]:
        """Return the state: one table per part, a row per context cube."""


def plurality(votes: Ints, weights: Floats, classes: int) -> Ints:
    """Return argmax_y of the summed weights of the experts that said y; MISSING if none spoke.

    Equal sums go to the label with the smaller index, so that a re-run gives the same answer.
    """
    mass = np.stack([(weights * (votes == y)).sum(axis=1) for y in range(classes)], axis=1)
    return np.where((votes != MISSING).any(axis=1), mass.argmax(axis=1), MISSING)
