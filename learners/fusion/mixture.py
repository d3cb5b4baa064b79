"""A committee mixed by log loss: the Bayes mixture over fusion rules.

Every member gives each label a chance. The mixture's chance is their mean by weight, and when the
label comes, each weight is multiplied by the chance that its member gave that label:

    w_i ~ exp(-L_i),   L_i = sum of -ln p_i(label),   p = sum of w_i p_i

So with these chances the mixture's own log loss exceeds that of the best of its E experts by at
most ln E, at all times and on any stream: exp(-sum of -ln p) is the mean of exp(-L_i), hence at
least exp(-min L)/E (J. Rissanen, "Universal coding, information, prediction, and estimation", IEEE
Trans. Information Theory 30, 1984). No rate has to be chosen, and the answer is a chance. It does
not bound errors; a committee, which counts errors, does.

A member's chance is the one it gives when the label comes, having learned all labels before it: so
the bound holds however late labels are, for the chances given then. They are the mixture's own,
not those that a diagnosis shows, which are calibrated. The chances p that are mixed are an expert's
own, kept above FLOOR / K, so that one that was sure of a wrong label is not lost forever:

    p = FLOOR / K + (1 - FLOOR) own  >=  (1 - FLOOR (1 - 1/K)) own

Against what an expert would lose by its own chances (an LL's: those of its log-odds, cut off), each
label may therefore cost `floor_cost` more: 0.005 nats for two labels. An LL that is an expert and
sent nothing takes the mixture's loss (Y. Freund and others, "Using and combining predictors that
specialize", STOC 1997).

State: the members' tables, and per cube the labelled instances and each expert's log loss in nats:
a fold over labels in order.
"""

from collections.abc import Mapping
from math import log1p
from typing import NamedTuple

import numpy as np

from learners.arrays.shares import UNIT, completed, rounded, winner
from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.fusion.ballot_log_odds import ballot_log_odds, label_chances
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.rules_as_experts import FusionOfRules
from learners.fusion.weighted import falling_exp

FLOOR = 0.01
"""The share of a chance that is spread evenly over all labels."""


def floor_cost(classes: int) -> float:
    """Return how many nats per label an expert may lose by being kept off 0 and 1.

    >>> round(floor_cost(2), 4)
    0.005
    """
    return -log1p(-FLOOR * (1.0 - 1.0 / classes))


class _Said(NamedTuple):
    """What E experts say: their labels (n, E), and the chance of each label (n, E, K)."""

    votes: Ints
    chances: Floats

    @property
    def present(self) -> Bools:
        return np.asarray(self.votes >= 0)


class Mixture(FusionOfRules):
    """The Bayes mixture of fusion rules.

    members         name -> fusion rule
    with_learners   let the LLs be experts as well, so that the bound covers the best LL too
    """

    own = "mixture"

    def __init__(
        self,
        members: Mapping[str, Fusion],
        *,
        cubes: int | None = 1,
        with_learners: bool = False,
        prefer: int = 0,
    ) -> None:
        super().__init__(members, with_learners=with_learners, prefer=prefer)
        self._table = table_for(cubes, 1 + self.expert_count, np.float64)

    def _listen(self, ballot: Ballot) -> _Said:
        all_fused = [member.decide(ballot) for member in self.members.values()]
        votes = [fused.labels[:, None] for fused in all_fused]
        chances = [fused.support[:, None] for fused in all_fused]
        if self.with_learners:
            odds = ballot_log_odds(ballot).reshape(-1, self.classes)
            votes.append(ballot.labels)
            chances.append(label_chances(odds).reshape(len(ballot), self.learners, self.classes))
        floored = FLOOR / self.classes + (1.0 - FLOOR) * np.concatenate(chances, axis=1)
        return _Said(np.concatenate(votes, axis=1), floored)

    def _mix(self, cells: Ints, opinions: _Said) -> tuple[Floats, Floats]:
        """Return the experts' weights (n, E), up to scale, and the mixture's chances (n, K)."""
        weights = falling_exp(-self._table.rows(cells)[:, 1:], opinions.present)
        total = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return weights, np.asarray((weights[:, :, None] * opinions.chances).sum(axis=1) / total)

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        opinions = self._listen(ballot)
        weights, chances = self._mix(ballot.cells, opinions)
        # Rounded, so that a batch's make-up, which can move the last bits, does not break ties.
        labels = winner(np.rint(chances * UNIT), opinions.present, self.prefer)
        parts = completed(rounded(weights, opinions.present))
        return FusedPredictions(labels, parts, opinions.votes, chances * ballot.heard[:, None])

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        nothing = np.zeros((1, self.learners), np.int64)
        # One by one: a member's chance is the one it gives after learning all earlier labels.
        for t, label in enumerate(truth.tolist()):
            at = np.array([t])
            instance = ballot.take(at)
            if instance.heard[0]:
                self._count(instance, label)
            for i, member in enumerate(self.members.values()):
                decided = FusedPredictions.recalled(fused.votes[at, i], nothing, instance.labels)
                member.learn(instance, decided, truth[at])

    def _count(self, instance: Ballot, label: int) -> None:
        """Add each expert's log loss on one instance; a silent one takes the mixture's."""
        opinions = self._listen(instance)
        _, mixed = self._mix(instance.cells, opinions)
        chances = np.where(opinions.present, opinions.chances[:, :, label], mixed[:, label, None])
        self._table.add(instance.cells, np.concatenate([np.ones((1, 1)), -np.log(chances)], axis=1))

    def _own_tables(self) -> Mapping[str, CellTable]:
        return {self.own: self._table}
