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


class LocalLearner:
    """One LL with K labels.

    >>> from learners.local.features import unit_cube
    >>> from learners.rules.constant import Constant
    >>> from learners.arrays.seeds import seeds_of
    >>> rules = [Constant(0, classes=2), Constant(1, classes=2)]
    >>> learner = LocalLearner(unit_cube(2), rules, IupConfig(rules=2, cuts=2), classes=2)
    >>> rows = np.array([[0.1, 0.2], [0.8, 0.9]])
    >>> said = learner.decide(rows, seeds_of(["p1", "p2"]))
    >>> chosen = said.choices
    >>> learner.learn(phase=chosen.phase, cubes=chosen.cubes, rules=chosen.rules,
    ...               votes=said.votes, truth=np.array([0, 1]))
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
    def joint(self) -> bool:
        """Tell whether a rule needs to hear what the other LLs had said when the label comes."""
        return any(isinstance(rule, LearningRule) and rule.joint for rule in self.rules)

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

    def learn(
        self,
        *,
        phase: int | Ints,
        cubes: Ints,
        rules: Ints,
        votes: Ints,
        truth: Ints,
        rows: Floats | None = None,
        others: Floats | None = None,
    ) -> None:
        """Take in labels of instances decided earlier, in order.

        `votes` (n, F) are the rules' labels at decision time; under bandit feedback only the chosen
        rule's is read. `rows` are needed if a rule learns, `others` (n, K), the
        log-odds of the other LLs together, if one is joint. If a rule fails on them, RuleError is
        raised after others may have learned: go on from a restored learner.
        """
        correct: Bools = votes == truth[:, None]
        self.iup.learn(phase, cubes, rules, correct)
        for rule in self.rules:
            if isinstance(rule, LearningRule):
                if rows is None:
                    raise LearnerError("a rule that learns needs the features with the label")
                rule.learn(rows, truth, others)
