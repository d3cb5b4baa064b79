"""Votes of given strength: what signed weights of LLs decide, and weights that never change."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from learners.arrays.shares import UNIT, completed, proportions, rounded, tally, winner
from learners.arrays.tables import CellTable
from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions, Fusion


class SignedVote(Fusion):
    """A fusion rule whose weights may be negative: such an LL votes against the label it says.

    Where no LL has any weight they all count the same. Among the shares a negative weight shows as
    no share.
    """

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        present = ballot.present
        strengths = np.where(present, self._strengths(ballot), 0.0)
        size = np.abs(strengths).max(axis=1, keepdims=True)
        # Rounded like shares, so that equal strengths make a tie whatever the order of addition.
        votes = np.where(size > 0, np.rint(strengths / np.where(size > 0, size, 1.0) * UNIT), UNIT)
        mass = tally(ballot.labels, votes.astype(np.int64), self.classes)
        parts = completed(rounded(np.maximum(strengths, 0.0), present))
        support = self._support(mass * (size / UNIT), ballot)
        return FusedPredictions(winner(mass, present, self.prefer), parts, ballot.labels, support)

    def _support(self, scores: Floats, ballot: Ballot) -> Floats:
        """Return (n, K): how much speaks for each label, given the summed weights of its voters."""
        return proportions(scores, ballot.heard)

    @abstractmethod
    def _strengths(self, ballot: Ballot, /) -> Floats:
        """Return (n, M) signed weights, in any scale; those of absent LLs do not matter."""


class FixedVote(SignedVote):
    """Weights that were found elsewhere and do not change, such as those of offline boosting.

    Equal weights, the default, are the plain majority.
    """

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        weights: Sequence[float] | None = None,
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        self._fixed = np.ones(learners) if weights is None else np.asarray(weights, np.float64)
        if self._fixed.shape != (learners,) or not np.isfinite(self._fixed).all():
            raise LearnerError(f"weights must be {learners} finite numbers, one per local learner")

    def _strengths(self, ballot: Ballot, /) -> Floats:
        return np.broadcast_to(self._fixed, ballot.labels.shape)

    def _learn(self, _ballot: Ballot, _fused: FusedPredictions, _truth: Ints, /) -> None:
        """Learn nothing: the weights are fixed."""

    def tables(self) -> Mapping[str, CellTable]:
        """Return nothing: there is no state."""
        return {}
