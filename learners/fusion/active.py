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
from learners.fusion.base import UNKNOWN, Ballot, FusedPredictions, Fusion
from learners.fusion.weighted import weigh

_SALT = 2


class Active(Fusion):
    """Applies a fusion rule to the LLs that exploit."""

    def __init__(self, inner: Fusion) -> None:
        super().__init__(inner.learners, inner.classes, prefer=inner.prefer)
        if inner.own_experts:
            raise LearnerError("a committee cannot be active; make its members active instead")
        self.inner = inner

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        fused = self.inner.decide(ballot.without(ballot.exploring))
        idle = np.flatnonzero((fused.labels < 0) & ballot.heard)
        if idle.size:
            self._follow_anyone(ballot.take(idle), fused, idle)
        return replace(fused, votes=ballot.labels)

    def _follow_anyone(self, ballot: Ballot, fused: FusedPredictions, idle: Ints) -> None:
        """Fill in the instances for which every LL that spoke explores."""
        drawn = weigh(
            ballot.labels,
            np.ones(ballot.labels.shape),
            ballot.seeds,
            classes=self.classes,
            use="sample",
            salt=_SALT,
            prefer=self.prefer,
        )
        fused.labels[idle] = drawn.labels
        fused.parts[idle] = drawn.parts
        fused.support[idle] = drawn.support

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        unheard = ballot.exploring
        heard = replace(
            fused,
            votes=np.where(unheard, MISSING, fused.votes),
            parts=np.where(unheard, 0, fused.parts),
        )
        self.inner.learn(ballot.without(unheard), heard, truth)

    def awake(self, ballot: Ballot, fused: FusedPredictions, /) -> Bools:
        """(n, E): the LL exploited; for a decision without a basis, it spoke."""
        with_basis = False if fused.basis is None else fused.basis[:, :1] != UNKNOWN
        return np.asarray((fused.votes >= 0) & ~(ballot.exploring & with_basis))

    def tables(self) -> Mapping[str, CellTable]:
        """Return the state of the wrapped rule."""
        return self.inner.tables()

    def pooled(self, name: str, rows: Rows, /) -> Rows:
        """Pool as the wrapped rule does."""
        return self.inner.pooled(name, rows)
