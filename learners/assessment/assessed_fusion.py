"""A fusion rule together with its assessment, for use without a stream."""

from dataclasses import replace

import numpy as np

from learners.arrays.types import MISSING, Ints
from learners.assessment.assessment import Assessed, Assessment
from learners.fusion.base import Ballot, FusedPredictions, Fusion


class AssessedFusion:
    """Decides, says how sure it is, and learns both from labels.

    >>> from learners.arrays.seeds import seeds_of
    >>> from learners.fusion.hedge import Hedge
    >>> fusion = AssessedFusion(Hedge(3, 2, use="vote"), Assessment(2))
    >>> ballot = Ballot.of(np.array([[1, 1, 0]]), seeds_of(["a"]), classes=2)
    >>> for _ in range(20):
    ...     fused, assessed = fusion.decide(ballot)
    ...     fusion.learn(ballot, fused, assessed, truth=np.array([1]))
    >>> fused, assessed = fusion.decide(ballot)
    >>> assessed.answered.tolist(), assessed.labels.tolist(), assessed.chance.tolist()
    ([True], [1], [[0.0079, 0.9921]])
    """

    def __init__(self, fusion: Fusion, assessment: Assessment) -> None:
        self.fusion, self.assessment = fusion, assessment

    def decide(self, ballot: Ballot) -> tuple[FusedPredictions, Assessed]:
        """Fuse a batch and say how sure each diagnosis is; its labels are those that are issued."""
        fused = guessed(self.fusion.decide(ballot), self.fusion.prefer)
        assessed = self.assessment.assess(fused)
        return replace(fused, labels=assessed.labels), assessed

    def learn(
        self, ballot: Ballot, fused: FusedPredictions, assessed: Assessed, truth: Ints
    ) -> None:
        """Take in the labels of instances decided earlier."""
        self.fusion.learn(ballot, fused, truth)
        if len(truth):
            self.assessment.learn(assessed.labels, truth, assessed.kept)


def guessed(fused: FusedPredictions, prefer: int) -> FusedPredictions:
    """Put the preferred label where no learner has an opinion."""
    return replace(fused, labels=np.where(fused.labels == MISSING, prefer, fused.labels))
