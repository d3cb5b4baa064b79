"""Fusion by the confidence that LLs send along, beside the paper's modes.

`ConfidenceVote`: each vote counts ln(a/(1-a)) + ln(K-1), the log-odds of the accuracy `a` that the
LL claims for it. If claims are true and LLs err independently, that is the most probable label (the
naive Bayes vote). An LL that claims nothing is weighed by what the EL saw of it.

`HedgeOdds`: sum_i q_i lo_i, the LLs' log-odds weighted by Hedge. A confident LL can outvote two
doubtful ones, and an LL whose confidence is hollow loses its weight by its errors.

Neither inherits the bound of Theorem 2; a committee (`learners/fusion/committee.py`) of such rules
does, over its members.
"""

from collections.abc import Mapping
from math import log

import numpy as np

from learners.arrays.shares import completed, proportions, rounded, winner
from learners.arrays.tables import CellTable
from learners.arrays.types import Floats, Ints
from learners.fusion.ballot_log_odds import (
    CLIP,
    accuracy_log_odds,
    ballot_log_odds,
    check_clip,
    label_chances,
)
from learners.fusion.base import Ballot, FusedPredictions, unsent
from learners.fusion.error_counts import ErrorCounts
from learners.fusion.hedge import Hedge, Rate
from learners.fusion.peers.fixed import SignedVote
from learners.fusion.weighted import falling_exp


class ConfidenceVote(SignedVote):
    """Votes weighted by the log-odds of the accuracy that the LL claims, or that the EL saw.

    clip    the largest weight of a vote, as log-odds
    """

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        cubes: int | None = 1,
        clip: float = CLIP,
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        check_clip(clip)
        self._clip = clip
        self._errors = ErrorCounts(learners, cubes)

    def _strengths(self, ballot: Ballot, /) -> Floats:
        accuracy = ballot.accuracy
        if unsent(accuracy) or np.isnan(accuracy).any():
            measured = 1.0 - self._errors.error_rates(ballot.cells)
            accuracy = np.where(np.isnan(accuracy), measured, accuracy)
        return accuracy_log_odds(accuracy, self._clip) + log(self.classes - 1)

    def _support(self, scores: Floats, ballot: Ballot) -> Floats:
        """Return the labels' chances, were all claims true and independent."""
        chances = falling_exp(scores, np.ones(scores.shape, np.bool_))
        return proportions(chances, ballot.heard)

    def _learn(self, ballot: Ballot, _fused: FusedPredictions, truth: Ints, /) -> None:
        self._errors.learn(ballot, truth)

    def tables(self) -> Mapping[str, CellTable]:
        """Return the trials and errors of each LL per cube."""
        return {"record": self._errors.table}


class HedgeOdds(Hedge):
    """The LLs' log-odds, weighted by Hedge; state and learning are Hedge's."""

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        cubes: int | None = 1,
        eta_scale: float = 1.0,
        rate: Rate = "anytime",
        clip: float = CLIP,
        prefer: int = 0,
    ) -> None:
        super().__init__(
            learners,
            classes,
            cubes=cubes,
            use="vote",
            eta_scale=eta_scale,
            rate=rate,
            prefer=prefer,
        )
        check_clip(clip)
        self._clip = clip

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        present = ballot.present
        parts = completed(rounded(self._weights(ballot), present))
        heard = ballot_log_odds(ballot, self._clip)
        # Rounded, so that what should cancel out does, whatever the order of addition.
        total = np.rint((parts[:, :, None] * heard).sum(axis=1)).astype(np.int64)
        support = label_chances(total / 1e9) * ballot.heard[:, None]
        labels = winner(total, present, self.prefer)
        return FusedPredictions(labels, parts, ballot.labels, support, self.weights.basis(ballot))
