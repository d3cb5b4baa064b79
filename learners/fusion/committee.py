"""A committee: Hedge over fusion rules.

No fusion rule is best on every stream. A committee runs several side by side, counts the errors of
each, and weighs their decisions as AH or WM weighs LLs: its experts are the fusion rules and, if
wanted, the LLs themselves. Theorem 2 knows nothing of its experts but their losses, so it holds
here: with `use="sample"` expected errors exceed those of the best member by at most
2 sqrt(T ln E) with labels on time, E being the number of experts (Theorem 4 with contexts); late
labels make it larger (`late_labels.py`). That is the safety net for rules without a bound of their
own, such as the stack.

Members decide and learn as they would alone, but for one thing: their shares are not kept, so for
a silent LL a Hedge among them counts the loss of the label it decided on, not its expected loss.
State: the members' tables, and Hedge's per cube for the committee.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.hedge import HedgeWeights, Rate, pooled_weights
from learners.fusion.rules_as_experts import FusionOfRules
from learners.fusion.weighted import Use, check_use, weigh

_SALT = 4


class Committee(FusionOfRules):
    """Hedge over fusion rules.

    members         name -> fusion rule
    with_learners   let the LLs be experts as well, so that the bound covers the best LL too
    use, eta_scale, rate   as for Hedge
    """

    own = "committee"

    def __init__(
        self,
        members: Mapping[str, Fusion],
        *,
        cubes: int | None = 1,
        with_learners: bool = False,
        use: Use = "vote",
        eta_scale: float = 1.0,
        rate: Rate = "anytime",
        prefer: int = 0,
    ) -> None:
        super().__init__(members, with_learners=with_learners, prefer=prefer)
        if any(member.own_experts for member in members.values()):
            raise LearnerError("a committee cannot have a committee as its member")
        check_use(use)
        self.use: Use = use
        self.weights = HedgeWeights(self.expert_count, cubes, eta_scale=eta_scale, rate=rate)

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        labels = [member.decide(ballot).labels[:, None] for member in self.members.values()]
        votes = np.concatenate([*labels, ballot.labels] if self.with_learners else labels, axis=1)
        fused = weigh(
            votes,
            self.weights.of(ballot.cells, votes >= 0),
            ballot.seeds,
            classes=self.classes,
            use=self.use,
            salt=_SALT,
            prefer=self.prefer,
        )
        return replace(fused, basis=self.weights.basis(ballot))

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        members = fused.votes[:, : len(self.members)]
        nothing = np.zeros(ballot.labels.shape, np.int64)
        for member, labels in zip(self.members.values(), members.T, strict=True):
            decided = FusedPredictions.recalled(labels, nothing, ballot.labels, fused.basis)
            member.learn(ballot, decided, truth)
        # An LL that spoke after the decision takes its loss all the same.
        votes = np.concatenate([members, ballot.labels], axis=1) if self.with_learners else members
        self.weights.learn(ballot.cells, votes, truth, fused)

    def _own_tables(self) -> Mapping[str, CellTable]:
        losses, *rest = self.weights.tables().items()
        return {self.own: losses[1]} | {f"{self.own}.{part}": table for part, table in rest}

    def _pooled_own(self, name: str, rows: Rows) -> Rows:
        return pooled_weights(name.partition(".")[2], rows)
