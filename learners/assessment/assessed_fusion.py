"""A fusion rule together with its assessment, for use without a stream."""

from dataclasses import replace

import numpy as np

from learners.arrays.types import MISSING, Ints
from learners.assessment.assessment import Assessed, Assessment
from learners.fusion.base import Ballot, Fusion, Verdict


class AssessedFusion:
    """Decides, says how sure it is, and learns both from labels.

    >>> from learners.arrays.seeds import seeds_of
    >>> from learners.fusion.hedge import Hedge
    >>> fusion = AssessedFusion(Hedge(3, 2, use="vote"), Assessment(2))
    >>> ballot = Ballot.of(np.array([[1, 1, 0]]), seeds_of(["a"]), classes=2)
    >>> for _ in range(20):
    ...     verdict, assessed = fusion.decide(ballot)
    ...     fusion.learn(ballot, verdict, assessed, truth=np.array([1]))
    >>> verdict, assessed = fusion.decide(ballot)
    >>> assessed.answered.tolist(), assessed.labels.tolist(), assessed.chance.tolist()
    ([True], [1], [[0.0079, 0.9921]])
    """

    def __init__(self, fusion: Fusion, assessment: Assessment) -> None:
        self.fusion, self.assessment = fusion, assessment

    def decide(self, ballot: Ballot) -> tuple[Verdict, Assessed]:
        """Fuse a batch and say how sure each diagnosis is; the verdict has the labels issued."""
        verdict = guessed(self.fusion.decide(ballot), self.fusion.prefer)
        assessed = self.assessment.assess(verdict)
        return replace(verdict, labels=assessed.labels), assessed

    def learn(self, ballot: Ballot, verdict: Verdict, assessed: Assessed, truth: Ints) -> None:
        """Take in the labels of instances decided earlier."""
        self.fusion.learn(ballot, verdict, truth)
        if len(truth):
            self.assessment.learn(assessed.labels, truth, assessed.kept)


def guessed(verdict: Verdict, prefer: int) -> Verdict:
    """Return the verdict with the preferred label where no learner has an opinion."""
    return replace(verdict, labels=np.where(verdict.labels == MISSING, prefer, verdict.labels))
