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

The preset `mixed` weighs its members by how well they have done (`MixedCommittee`), so they may
differ more: logistic regression by SGD on z-scores, rate 0.05, with a constant of which three make
one, so that it follows the share of each label; Bayesian logistic regression on z-scores, for what
is straight; the same on log-scaled z-scores with 60 random Fourier features, for what bends or has
outliers. It did better than `joint` where the stream drifts, where labels are late and where one
line is the truth, and about the same elsewhere.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import exp, log
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule, RuleError
from learners.rules.bayes import BayesianLogistic
from learners.rules.joint import Following, Heard, Steps, learn_beside
from learners.rules.lda import RankLda
from learners.rules.logistic import Logistic
from learners.rules.odds import heads, sigmoid, targets
from learners.rules.states import array, nest, part_of, parts_of

CLIP = 5.0
SHARED = 0.3
"""The constant column of learners that fit one model together: three make about a quarter of one
constant. Smaller still helps where values are missing, and costs where one label is rare."""
THIRD = 0.6
"""The same for SGD in `mixed`: three make about one."""

RATE = 0.5
"""How fast weights follow log losses; 1 is the Bayes mixture's."""
FLOOR = 0.005
"""The share of a chance that is spread evenly over both outcomes when losses are counted."""


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

    def shares(self) -> list[float] | None:
        """Return the members' weights, which sum to one; None if all weigh the same."""
        return None

    def _log_odds(self, rows: Floats) -> Floats:
        total = np.zeros((len(rows), self.classes))
        shares = self.shares()
        for i, member in enumerate(self.members):
            cut = np.clip(member.log_odds(rows), -self.clip, self.clip)
            total += cut if shares is None else shares[i] * cut
        return total / len(self.members) if shares is None else total

    def _parts(self, rows: Floats) -> Floats:
        """Return the mean of the members' parts, cut as their log-odds are."""
        total = np.zeros((len(rows), self.space.d, self.classes))
        shares = self.shares()
        for i, member in enumerate(self.members):
            if member.additive:
                size = np.abs(member.log_odds(rows))
                scale = self.clip / np.maximum(size, self.clip)
                parts = member.parts(rows) * scale[:, None, :]
                total += parts if shares is None else shares[i] * parts
        return total / len(self.members) if shares is None else total

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
        return _SideBySide(self._member_steps(rows, truth), self.clip)

    def _member_steps(self, rows: Floats, truth: Ints) -> list[Steps]:
        return [m.steps(rows, truth) if m.joint else _Alone(m, rows, truth) for m in self.members]

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


class MixedCommittee(Committee):
    """The mean of its members' clipped log-odds, weighted by their log losses so far.

        w_i ~ exp(-L_i / 2),   L_i = sum of -ln p_i(label),   p_i = sigma(a_i + o)

    where a_i are a member's log-odds before it learned the row, and o those of the other learners:
    what counts is how well the member does as a part of the whole. The loss of the mean is at most
    the mean of the losses, so this is Hedge with losses in nats. The rate of one half was measured:
    with 1, few labels decide too much. Chances are kept off 0 and 1 by FLOOR, so that a member that
    was once sure of a wrong label is not lost forever.

    It also measures how far the other learners go along with it (`joint.Following`).
    """

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        members: Sequence[LearningRule],
        *,
        clip: float = CLIP,
    ) -> None:
        super().__init__(name, space, classes, members, clip=clip)
        self.losses = [0.0] * len(self.members)
        self.following = Following()

    def shares(self) -> list[float]:
        """Return the members' weights; they sum to one."""
        least = min(self.losses)
        weights = [exp(RATE * (least - loss)) for loss in self.losses]
        total = sum(weights)
        return [weight / total for weight in weights]

    def _learn(self, rows: Floats, truth: Ints) -> None:
        self._learn_beside(rows, truth, Heard.fresh(np.zeros((len(rows), self.classes))))

    def _learn_beside(self, rows: Floats, truth: Ints, heard: Heard) -> None:
        with self._whole():
            learn_beside(self.steps(rows, truth), heard, self.classes, self.following)

    def steps(self, rows: Floats, truth: Ints) -> Steps:
        """Return the members' steps side by side."""
        return _Mixed(self, self._member_steps(rows, truth), truth)

    def state(self) -> State:
        """Return the members' states under their positions, their losses, and who goes along."""
        following = np.array([self.following.along, self.following.own])
        return {**super().state(), "losses": np.array(self.losses), "following": following}

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        super().restore(state)
        self.losses = array(state, "losses", np.float64, (len(self.members),)).tolist()
        self.following = Following(*array(state, "following", np.float64, (2,)).tolist())

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        sums = ("losses", "following")
        added = {key: np.sum([state[key] for state in states], axis=0) for key in sums}
        return {**super()._average(states, shares), **added}


class _SideBySide(Steps):
    """The steps of several members: what they say together is the mean of their cut log-odds."""

    def __init__(self, members: Sequence[Steps], clip: float) -> None:
        self._members = members
        self._clip = clip

    def look(self, row: int) -> list[float]:
        """Return the committee's log-odds."""
        looks = [member.look(row) for member in self._members]
        return [sum(map(self._cut, opinions)) / len(looks) for opinions in zip(*looks, strict=True)]

    def _cut(self, odds: float) -> float:
        return max(-self._clip, min(self._clip, odds))

    def learn(self, offsets: list[float]) -> None:
        """Let every member learn from the row."""
        for member in self._members:
            member.learn(offsets)


class _Mixed(Steps):
    """The steps of a mixed committee's members; their losses are counted in place."""

    def __init__(self, committee: MixedCommittee, members: Sequence[Steps], truth: Ints) -> None:
        self._committee, self._members = committee, members
        by_head = [
            targets(truth, head, committee.classes) for head in range(heads(committee.classes))
        ]
        self._y = list(zip(*by_head, strict=True))
        self._row, self._member_odds = 0, [[0.0]]

    def look(self, row: int) -> list[float]:
        """Return the committee's log-odds."""
        clip = self._committee.clip
        self._row = row
        self._member_odds = [[max(-clip, min(clip, a)) for a in m.look(row)] for m in self._members]
        together = [0.0] * len(self._member_odds[0])
        for share, opinions in zip(self._committee.shares(), self._member_odds, strict=True):
            for head, a in enumerate(opinions):
                together[head] += share * a
        return together

    def learn(self, offsets: list[float]) -> None:
        """Count each member's loss beside the others, and let it learn from the row."""
        losses, y = self._committee.losses, self._y[self._row]
        for i, (member, opinions) in enumerate(zip(self._members, self._member_odds, strict=True)):
            for a, o, target in zip(opinions, offsets, y, strict=True):
                chance = sigmoid(a + o if target else -a - o)
                losses[i] -= log(FLOOR / 2.0 + (1.0 - FLOOR) * chance)
            member.learn(offsets)


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

    def learn(self, offsets: list[float]) -> None:
        """Let the member learn from the row by itself."""
        del offsets
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


def mixed(name: str, space: FeatureSpace, classes: int, *, seed: int = 0) -> MixedCommittee:
    """Return the preset committee of joint rules that are weighed by how well they have done."""
    bayes: dict[str, Any] = {"joint": True, "constant": SHARED}
    members = (
        Logistic(
            f"{name}/K", space, classes, rate=0.05, scaling="zscore", joint=True, constant=THIRD
        ),
        BayesianLogistic(f"{name}/B", space, classes, prior=0.3, scaling="zscore", **bayes),
        BayesianLogistic(
            f"{name}/I", space, classes, prior=0.5, scaling="log", fourier=60, spread=0.3,
            seed=seed, centred=True, **bayes,
        ),
    )  # fmt: skip
    return MixedCommittee(name, space, classes, members)


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
