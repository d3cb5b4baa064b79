"""Active EL: hear only the LLs that exploit (Section VI of the paper, "Active EL").

An LL that explores follows a rule it is unsure of, and says so. The active EL applies its fusion
rule to the paper's A(t), the LLs that exploit: only they are heard, and only their weights change.
When all explore, it follows one of them at random.

An exploring LL is, for the wrapped rule, an LL that sent nothing. Time goes on for every labelled
instance, as the paper's t does. Regret counts against an LL where it exploits.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import MISSING, Bools, Ints
from learners.errors import LearnerError
from learners.fusion.base import UNKNOWN, Ballot, Fusion, Verdict
from learners.fusion.weighted import weigh

_SALT = 2


class Active(Fusion):
    """Applies a fusion rule to the LLs that exploit."""

    def __init__(self, inner: Fusion) -> None:
        super().__init__(inner.learners, inner.classes, prefer=inner.prefer)
        if inner.own_experts:
            raise LearnerError("a committee cannot be active; make its members active instead")
        self.inner = inner

    def _decide(self, ballot: Ballot, /) -> Verdict:
        verdict = self.inner.decide(ballot.without(ballot.exploring))
        idle = np.flatnonzero((verdict.labels < 0) & ballot.heard)
        if idle.size:
            self._follow_anyone(ballot.take(idle), verdict, idle)
        return replace(verdict, votes=ballot.labels)

    def _follow_anyone(self, ballot: Ballot, verdict: Verdict, idle: Ints) -> None:
        """Fill in the verdict on those instances for which every LL that spoke explores."""
        drawn = weigh(
            ballot.labels,
            np.ones(ballot.labels.shape),
            ballot.seeds,
            classes=self.classes,
            use="sample",
            salt=_SALT,
            prefer=self.prefer,
        )
        verdict.labels[idle] = drawn.labels
        verdict.parts[idle] = drawn.parts
        verdict.support[idle] = drawn.support

    def _learn(self, ballot: Ballot, verdict: Verdict, truth: Ints, /) -> None:
        unheard = ballot.exploring
        heard = replace(
            verdict,
            votes=np.where(unheard, MISSING, verdict.votes),
            parts=np.where(unheard, 0, verdict.parts),
        )
        self.inner.learn(ballot.without(unheard), heard, truth)

    def awake(self, ballot: Ballot, verdict: Verdict, /) -> Bools:
        """(n, E): the LL exploited; for a decision without a basis, it spoke."""
        with_basis = False if verdict.basis is None else verdict.basis[:, :1] != UNKNOWN
        return np.asarray((verdict.votes >= 0) & ~(ballot.exploring & with_basis))

    def tables(self) -> Mapping[str, CellTable]:
        """Return the state of the wrapped rule."""
        return self.inner.tables()

    def pooled(self, name: str, rows: Rows, /) -> Rows:
        """Pool as the wrapped rule does."""
        return self.inner.pooled(name, rows)
