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

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import Ints
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.hedge import HedgeWeights, Rate, pooled_weights
from learners.fusion.weighted import Use, check_use, weigh

_SALT = 4
_OWN = "committee"


class Committee(Fusion):
    """Hedge over fusion rules.

    members         name -> fusion rule
    with_learners   let the LLs be experts as well, so that the bound covers the best LL too
    use, eta_scale, rate   as for Hedge
    """

    own_experts = True

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
        sizes = {(member.learners, member.classes) for member in members.values()}
        if len(sizes) != 1:
            raise LearnerError("a committee needs members, all for the same learners and labels")
        learners, classes = next(iter(sizes))
        super().__init__(learners, classes, prefer=prefer)
        if any(member.own_experts for member in members.values()):
            raise LearnerError("a committee cannot have a committee as its member")
        check_use(use)
        self.members = dict(members)
        self.use: Use = use
        self.with_learners = with_learners
        experts = len(members) + learners * with_learners
        self.weights = HedgeWeights(experts, cubes, eta_scale=eta_scale, rate=rate)

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

    def tables(self) -> Mapping[str, CellTable]:
        """Return the committee's losses, and each member's tables as `member.table`."""
        losses, *rest = self.weights.tables().items()
        own = {_OWN: losses[1]} | {f"{_OWN}.{part}": table for part, table in rest}
        return own | {
            f"{name}.{part}": table
            for name, member in self.members.items()
            for part, table in member.tables().items()
        }

    def pooled(self, name: str, rows: Rows, /) -> Rows:
        """Pool a table as its owner does."""
        member, _, part = name.partition(".")
        if member == _OWN:
            return pooled_weights(part, rows)
        return self.members[member].pooled(part, rows)

    def experts(self, learners: Sequence[str]) -> list[str]:
        """Return the members' names, then those of the LLs if they are experts."""
        return [*self.members, *(learners if self.with_learners else ())]
