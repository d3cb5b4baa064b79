"""A committee: the mean of several learning rules' log-odds, each cut at `clip`.

The cut keeps one over-confident member from silencing the others. The preset `kdi` is the committee
that did best on single passes over small medical data: members that err differently, namely

    K   logistic regression by SGD on z-scores, rate 0.2
    D   linear discriminant analysis on ranks, scatter started at 10 I
    I   Bayesian logistic regression on log-scaled z-scores and 60 random Fourier features
"""

from collections.abc import Sequence

import numpy as np

from learners.errors import LearnerError
from learners.features import FeatureSpace
from learners.rules.base import LearningRule, RuleError
from learners.rules.bayes import BayesianLogistic
from learners.rules.lda import RankLda
from learners.rules.logistic import Logistic
from learners.rules.states import nest, part_of, parts_of
from learners.types import Floats, Ints, State

CLIP = 5.0


class Committee(LearningRule):
    """The mean of its members' clipped log-odds; all members learn from every row."""

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        members: Sequence[LearningRule],
        *,
        clip: float = CLIP,
    ) -> None:
        super().__init__(name, space, classes)
        if not members:
            raise LearnerError(f"rule {name}: a committee needs at least one member")
        if any(m.classes != classes or m.space != space for m in members):
            raise LearnerError(f"rule {name}: members must share its features and labels")
        self.members = tuple(members)
        self.exact = all(member.exact for member in members)
        self.fallible = any(member.fallible for member in members)
        self.clip = clip

    def _log_odds(self, rows: Floats) -> Floats:
        total = np.zeros((len(rows), self.classes))
        for member in self.members:
            total += np.clip(member.log_odds(rows), -self.clip, self.clip)
        return total / len(self.members)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        before = self.state() if self.fallible else {}
        try:
            for member in self.members:
                member._guard(member._learn, rows, truth)  # the rows are checked already
        except RuleError:
            self.restore(before)
            raise

    def state(self) -> State:
        """Return the members' states under their positions."""
        return {
            key: value
            for i, member in enumerate(self.members)
            for key, value in nest(str(i), member.state()).items()
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        for i, member in enumerate(self.members):
            member.restore(part_of(state, str(i)))

    @property
    def averages(self) -> bool:
        """A committee can be combined over partitions if all its members can."""
        return all(member.averages for member in self.members)

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        return {
            key: value
            for i, member in enumerate(self.members)
            for key, value in nest(
                str(i), member._average(parts_of(states, str(i)), shares)
            ).items()
        }


def kdi(name: str, space: FeatureSpace, classes: int, *, seed: int = 0) -> Committee:
    """Return the preset committee."""
    members = (
        Logistic(f"{name}/K", space, classes, rate=0.2, scaling="zscore"),
        RankLda(f"{name}/D", space, classes, prior=10.0),
        BayesianLogistic(
            f"{name}/I", space, classes, prior=2.0, scaling="log", fourier=60, seed=seed
        ),
    )
    return Committee(name, space, classes, members)
