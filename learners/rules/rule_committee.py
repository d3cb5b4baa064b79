"""A committee: the mean of several learning rules' log-odds, each cut at `clip`.

The cut keeps one over-confident member from silencing the others. The preset `kdi` is the committee
that did best on single passes over small medical data: members that err differently, namely

    K   logistic regression by SGD on z-scores, rate 0.2
    D   linear discriminant analysis on ranks, scatter started at 10 I
    I   Bayesian logistic regression on log-scaled z-scores and 60 random Fourier features

The preset `additive` is for learners that fit one model together, each its own part of the
log-odds: logistic regression by SGD on z-scores, rate 0.05, and Bayesian logistic regression on
log-scaled z-scores, once plain and once with 60 random Fourier features, all joint. It did best of
all, by far where few positives may be missed.

The preset `joint` is the same but for the constants. Each learner of an additive model has one, and
they add up, so that together they follow the last labels faster and are believed to be larger than
one model's constant would be; random Fourier features hide another. Here each counts for
SHARED^2 of one, and the Fourier features are centred.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule, RuleError
from learners.rules.bayes import BayesianLogistic
from learners.rules.joint import Heard, Steps
from learners.rules.lda import RankLda
from learners.rules.logistic import Logistic
from learners.rules.odds import heads
from learners.rules.states import nest, part_of, parts_of

CLIP = 5.0
SHARED = 0.3
"""The constant column of learners that fit one model together: three make about a quarter of one
constant. Smaller still helps where values are missing, and costs where one label is rare."""


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
        self.joint = any(member.joint for member in members)
        self.additive = any(member.additive for member in members)
        self.scale_free = all(member.scale_free for member in members)
        self.clip = clip

    def _log_odds(self, rows: Floats) -> Floats:
        total = np.zeros((len(rows), self.classes))
        for member in self.members:
            total += np.clip(member.log_odds(rows), -self.clip, self.clip)
        return total / len(self.members)

    def _parts(self, rows: Floats) -> Floats:
        """Return the mean of the members' parts, cut as their log-odds are."""
        total = np.zeros((len(rows), self.space.d, self.classes))
        for member in self.members:
            if member.additive:
                size = np.abs(member.log_odds(rows))
                kept = self.clip / np.maximum(size, self.clip)
                total += member.parts(rows) * kept[:, None, :]
        return total / len(self.members)

    def _learn(self, rows: Floats, truth: Ints) -> None:
        with self._whole():
            for member in self.members:  # the rows are checked already
                member._guard(member._learn, rows, truth)

    def _learn_beside(self, rows: Floats, truth: Ints, heard: Heard) -> None:
        with self._whole():
            super()._learn_beside(rows, truth, heard)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Undo what other members have learned if one fails."""
        before = self.state() if self.fallible else {}
        try:
            yield
        except RuleError:
            self.restore(before)
            raise

    def steps(self, rows: Floats, truth: Ints) -> Steps:
        """Return the members' steps side by side."""
        members = [
            m.steps(rows, truth) if m.joint else _Alone(m, rows, truth) for m in self.members
        ]
        return _SideBySide(members, self.clip)

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


class _SideBySide(Steps):
    """The steps of several members: what they say together is the mean of their cut log-odds."""

    def __init__(self, members: Sequence[Steps], clip: float) -> None:
        self._members = members
        self._clip = clip

    def look(self, row: int) -> list[float]:
        """Return the committee's log-odds."""
        each = [member.look(row) for member in self._members]
        return [sum(map(self._cut, said)) / len(each) for said in zip(*each, strict=True)]

    def _cut(self, odds: float) -> float:
        return max(-self._clip, min(self._clip, odds))

    def learn(self, others: list[float]) -> None:
        """Let every member learn from the row."""
        for member in self._members:
            member.learn(others)


class _Alone(Steps):
    """A member that does not listen to other learners."""

    def __init__(self, rule: LearningRule, rows: Floats, truth: Ints) -> None:
        self._rule, self._rows, self._truth = rule, rows, truth
        self._at = slice(0, 1)

    def look(self, row: int) -> list[float]:
        """Return the member's log-odds."""
        self._at = slice(row, row + 1)
        odds: list[float] = self._rule.log_odds(self._rows[self._at])[0].tolist()
        return odds[-heads(self._rule.classes) :]

    def learn(self, others: list[float]) -> None:
        """Let the member learn from the row by itself."""
        del others
        self._rule._guard(self._rule._learn, self._rows[self._at], self._truth[self._at])


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


def additive(name: str, space: FeatureSpace, classes: int, *, seed: int = 0) -> Committee:
    """Return the preset committee of joint rules, each with a constant of its own."""
    return _joint(name, space, classes, seed, constant=1.0, centred=False)


def joint(name: str, space: FeatureSpace, classes: int, *, seed: int = 0) -> Committee:
    """Return the preset committee of joint rules whose constants are meant to be added up."""
    return _joint(name, space, classes, seed, constant=SHARED, centred=True)


def _joint(
    name: str, space: FeatureSpace, classes: int, seed: int, *, constant: float, centred: bool
) -> Committee:
    bayes: dict[str, Any] = {"prior": 0.5, "scaling": "log", "joint": True, "constant": constant}
    members = (
        Logistic(
            f"{name}/K", space, classes, rate=0.05, scaling="zscore", joint=True, constant=constant
        ),
        BayesianLogistic(f"{name}/B", space, classes, **bayes),
        BayesianLogistic(
            f"{name}/I", space, classes, fourier=60, spread=0.3, seed=seed, centred=centred, **bayes
        ),
    )
    return Committee(name, space, classes, members)
