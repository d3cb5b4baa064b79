"""A local learner (LL): its features, its rules, and IUP to choose among them (sections II and IV).

    1. scale      rows of raw values into the unit cube
    2. ask        every rule for its label: the rules are functions of the row, so all are known
    3. choose     one rule per row by IUP, and send its label with what learning will need
    4. learn      when labels come back: counts per cube, and the rules that learn

Deciding never changes the state. What is learned is a fold over the feedback: integer counts, whose
order does not matter, and the state of learning rules, whose order does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from learners.arrays.types import Bools, Floats, Ints, Seeds
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.local.iup import Choices, Iup, IupConfig
from learners.rules.base import LearningRule, Rule
from learners.theory.bounds import epsilon_floor, log_term
from learners.theory.intervals import accuracy_interval


@dataclass(frozen=True, slots=True)
class Predictions:
    """What an LL says about a batch of n instances.

    choices     what IUP chose, and the counts behind it
    labels      (n,)   label index of the chosen rule
    votes       (n, F) label index of every rule
    log_odds    (n, K) the chosen rule's log-odds per label, nan where it has none
    """

    choices: Choices
    labels: Ints
    votes: Ints
    log_odds: Floats


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an LL is of the chosen rules; one entry per instance.

    accuracy    estimate, nan where the cube has no trials
    low, high   holds the rule's accuracy in the cube at all times, with probability 95 %
    epsilon     Corollary 1: with probability 1 - 1/T the rule is that close to the best one; only
                under the paper's own setting (c = 1, no back-off, fixed rules), inf where N = 0
    """

    accuracy: Floats
    low: Floats
    high: Floats
    epsilon: Floats


class Labelled(NamedTuple):
    """The labels of n instances, with what an LL had decided on them.

    phase, cubes, rules   as in Choices; `phase` may be an array, because labels come late
    votes                 (n, F) the rules' labels at decision time; under bandit feedback only the
                          chosen rule's is read
    truth                 (n,)   the label that came
    """

    phase: int | Ints
    cubes: Ints
    rules: Ints
    votes: Ints
    truth: Ints

    @classmethod
    def of(cls, predictions: Predictions, truth: Ints) -> "Labelled":
        """Return predictions with their labels."""
        choices = predictions.choices
        return cls(choices.phase, choices.cubes, choices.rules, predictions.votes, truth)


class Lessons(NamedTuple):
    """What rules that learn are taught, in order.

    rows     (n, d) the features
    truth    (n,)   their labels
    others   (n, K) the log-odds of the other LLs together; needed by a joint rule
    """

    rows: Floats
    truth: Ints
    others: Floats | None = None

    def part(self, rows: slice) -> "Lessons":
        """Return some of the lessons."""
        others = None if self.others is None else self.others[rows]
        return Lessons(self.rows[rows], self.truth[rows], others)


class LocalLearner:
    """One LL with K labels.

    >>> from learners.local.features import unit_cube
    >>> from learners.rules.constant import Constant
    >>> from learners.arrays.seeds import seeds_of
    >>> rules = [Constant(0, classes=2), Constant(1, classes=2)]
    >>> learner = LocalLearner(unit_cube(2), rules, IupConfig(rules=2, cuts=2), classes=2)
    >>> rows = np.array([[0.1, 0.2], [0.8, 0.9]])
    >>> said = learner.decide(rows, seeds_of(["p1", "p2"]))
    >>> learner.learn(Labelled.of(said, truth=np.array([0, 1])))
    >>> learner.iup.labelled
    2
    """

    def __init__(
        self,
        space: FeatureSpace,
        rules: Sequence[Rule],
        config: IupConfig,
        *,
        classes: int,
        lipschitz: float = 1.0,
    ) -> None:
        if len(rules) != config.rules:
            raise LearnerError(f"{len(rules)} rules given, IUP was set up for {config.rules}")
        self.space = space
        self.rules = tuple(rules)
        self.iup = Iup(space, config)
        self.classes = classes
        self.lipschitz = lipschitz

    @property
    def learns(self) -> bool:
        """Tell whether a rule needs the features again when the label comes."""
        return any(rule.learns for rule in self.rules)

    @property
    def learning_rules(self) -> list[LearningRule]:
        """Return the rules that learn."""
        return [rule for rule in self.rules if isinstance(rule, LearningRule)]

    @property
    def joint(self) -> bool:
        """Tell whether a rule needs the other LLs' log-odds when the label comes."""
        return any(rule.joint for rule in self.learning_rules)

    def decide(
        self, rows: Floats, seeds: Seeds, rules: Sequence[Rule] | None = None
    ) -> Predictions:
        """Predict a batch of (n, d) rows; raises RuleError if a rule fails on it.

        `rules` are asked in place of the learner's own, where several partitions pool theirs.
        """
        choices = self.iup.decide(self.space.unit(rows), seeds)
        votes = np.empty((len(rows), len(self.rules)), np.int64)
        log_odds = np.full((len(rows), self.classes), np.nan)
        for f, rule in enumerate(self.rules if rules is None else rules):
            if rule.learns:
                votes[:, f], odds = rule.judge(rows)
                log_odds = np.where(choices.rules[:, None] == f, odds, log_odds)
            else:
                votes[:, f] = rule.predict(rows)
        labels = votes[np.arange(len(rows)), choices.rules]
        return Predictions(choices, labels, votes, log_odds)

    def confidence(self, choices: Choices) -> Confidence:
        """Say how sure the choices are."""
        phase = self.iup.phase(choices.phase)
        low, high = accuracy_interval(choices.trials, choices.successes)
        d = phase.partition.d
        floor = epsilon_floor(phase.horizon, d=d, L=self.lipschitz, alpha=self.iup.config.alpha)
        factor = 8.0 * log_term(phase.horizon, len(self.rules), phase.partition.size)
        with np.errstate(divide="ignore"):
            epsilon = np.sqrt(factor / choices.trials) + floor
        return Confidence(choices.accuracy, low, high, epsilon)

    def learn(self, labelled: Labelled, lessons: Lessons | None = None) -> None:
        """Take in labels of instances decided earlier: count them, then teach the rules, in order.

        `lessons` are needed if a rule learns. They may be fewer than the labels, where features
        were not kept for as long.
        """
        self.count(labelled)
        if lessons is not None:
            self.teach(lessons)
        elif self.learns:
            raise LearnerError("a rule that learns needs the features with the label")

    def count(self, labelled: Labelled) -> None:
        """Count which rules were right: the first half of `learn`."""
        correct: Bools = labelled.votes == labelled.truth[:, None]
        self.iup.learn(labelled.phase, labelled.cubes, labelled.rules, correct)

    def teach(self, lessons: Lessons) -> None:
        """Teach the rules that learn: the second half of `learn`.

        If a rule fails, RuleError is raised when others may have learned: restore them all then.
        """
        if len(lessons.truth):
            for rule in self.learning_rules:
                rule.learn(*lessons)
