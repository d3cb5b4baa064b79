"""Fusion rules that give each expert a weight, then vote or follow one expert drawn by weight."""

from abc import abstractmethod
from typing import Literal, TypeAlias, get_args

import numpy as np

from learners.arrays.shares import completed, draw, proportions, rounded, tally, winner
from learners.arrays.types import Bools, Floats, Ints, Seeds
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions, Fusion

Use: TypeAlias = Literal["vote", "sample"]
"""How weights become a decision: the label with most weight behind it, or one expert's label."""


def check_use(use: str) -> None:
    """Refuse an unknown way of using weights."""
    if use not in get_args(Use):
        raise LearnerError(f"use must be one of {', '.join(get_args(Use))}, not {use!r}")


def weigh(
    votes: Ints, weights: Floats, seeds: Seeds, *, classes: int, use: Use, salt: int, prefer: int
) -> FusedPredictions:
    """Turn weights >= 0 of experts and their votes into fused predictions.

    The vote counts rounded weights before the rounding's remainder is given away, so that equally
    heavy experts stay equal and a tie is a tie.
    """
    present = votes >= 0
    rough = rounded(weights, present)
    mass = tally(votes, rough, classes)
    parts = completed(rough)
    labels = winner(mass, present, prefer) if use == "vote" else draw(parts, votes, seeds, salt)
    return FusedPredictions(
        labels, parts, votes, proportions(mass, np.asarray(present.any(axis=1)))
    )


def falling_exp(log_weights: Floats, present: Bools) -> Floats:
    """Return exp(log_weights - their largest among the present): finite for any log-weights."""
    masked = np.where(present, log_weights, -np.inf)
    top = masked.max(axis=1, keepdims=True)
    return np.asarray(np.exp(masked - np.where(np.isfinite(top), top, 0.0)))


class WeightedFusion(Fusion):
    """A fusion rule whose experts are the LLs, with one weight each."""

    use: Use = "vote"
    salt = 0

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        return weigh(
            ballot.labels,
            self._weights(ballot),
            ballot.seeds,
            classes=self.classes,
            use=self.use,
            salt=self.salt,
            prefer=self.prefer,
        )

    @abstractmethod
    def _weights(self, ballot: Ballot) -> Floats:
        """Return (n, M) weights >= 0, in any scale; those of absent LLs do not matter."""
