"""A local learner (LL): its features, its rules, and IUP to choose among them (sections II and IV).

    1. scale      rows of raw values into the unit cube
    2. ask        every rule for its label: the rules are functions of the row, so all are known;
                  where values are missing, they see what is known of the feature in their place
    3. choose     one rule per row by IUP, and send its label with what learning will need
    4. learn      when labels come back: counts per cube, and the rules that learn

Deciding never changes the state. What is learned is a fold over the feedback: integer counts, whose
order does not matter, and the state of learning rules, whose order does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from learners.arrays.types import MISSING, Bools, Floats, Ints, Seeds
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.local.fill_and_scale import Moments
from learners.local.iup import Choices, Iup, IupConfig
from learners.rules.base import LearningRule, Rule, RuleError
from learners.rules.failing_rows import sift
from learners.rules.joint import Heard

_EVEN = 1e-9
"""Log-odds of all labels that differ by less are equal but for rounding."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What an LL says about a batch of n instances.

    choices     what IUP chose, and the counts behind it
    labels      (n,)   label index of the chosen rule, MISSING where it has no opinion
    votes       (n, F) label index of every rule, MISSING where it has no opinion
    log_odds    (n, K) the chosen rule's log-odds per label, nan where it has none, or no opinion
    missing     (n,)   how many features are missing; None if none is
    """

    choices: Choices
    labels: Ints
    votes: Ints
    log_odds: Floats
    missing: Ints | None = None


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an LL is of the chosen rules; one entry per instance (`theory.promises`).

    accuracy    estimate, nan where the cube has no trials
    low, high   interval that holds the rule's accuracy in the cube at all times, with probability
                95 %; nan where the rule learns or back-off is on
    epsilon     Corollary 1: with probability 1 - 1/T the rule is that close to the best one; nan
                unless the paper's own setting is used (c = 1, no weights, no back-off, fixed
                rules), inf where N = 0
    """

    accuracy: Floats
    low: Floats
    high: Floats
    epsilon: Floats


class Labelled(NamedTuple):
    """The labels of n instances, with what an LL had decided on them.

    phase, cubes, rules   as in Choices; `phase` may be an array, because labels come late
    votes                 (n, F) the rules' labels at decision time, MISSING where a rule had no
                          opinion: that is no trial of it. Under bandit feedback only the chosen
                          rule's is read
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
    """What rules that learn are taught, in order; joint rules need the last three.

    rows          (n, d) the features
    truth         (n,)   their labels
    others        (n, K) the log-odds of the other LLs together, when the decision was made
    own_log_odds  (n, K) this LL's own log-odds then (`opinion`), nan where its rule has none
    chosen        (n,)   the rule that they came from
    """

    rows: Floats
    truth: Ints
    others: Floats | None = None
    own_log_odds: Floats | None = None
    chosen: Ints | None = None

    def part(self, rows: slice) -> "Lessons":
        """Return some of the lessons."""
        return Lessons(
            self.rows[rows],
            self.truth[rows],
            None if self.others is None else self.others[rows],
            None if self.own_log_odds is None else self.own_log_odds[rows],
            None if self.chosen is None else self.chosen[rows],
        )

    def heard(self, rule: int, partners: int) -> Heard | None:
        """Return what a joint rule hears: the other LLs, and this LL where the rule was chosen."""
        if self.others is None:
            return None
        if self.own_log_odds is None or self.chosen is None:
            return Heard.fresh(self.others)
        by_rule = self.chosen[:, None] == rule
        return Heard(self.others, np.where(by_rule, self.own_log_odds, np.nan), partners)


def opinion(log_odds: Floats, labels: Ints) -> Floats:
    """Return the (n, K) log-odds that an LL had sent: 0 where it had no opinion, so no label."""
    return np.where(labels[:, None] < 0, 0.0, log_odds)


class Checkpoint(NamedTuple):
    """How a caller keeps what a learner has learned, so that a rule that fails leaves no trace.

    save      called with how many lessons have been learned since the last call
    restore   puts the rules and what is known of the features back to the last save
    """

    save: Callable[[int], None]
    restore: Callable[[], None]


class Pooled(NamedTuple):
    """What all partitions of an LL know together, apart from the counts per cube."""

    rules: Sequence[Rule]
    filling: Moments


class LocalLearner:
    """One LL with K labels.

    `partners` is how many other LLs of the ensemble have joint rules.

    >>> from learners.local.features import unit_cube
    >>> from learners.rules.constant import Constant
    >>> from learners.arrays.seeds import seeds_of
    >>> rules = [Constant(0, classes=2), Constant(1, classes=2)]
    >>> learner = LocalLearner(unit_cube(2), rules, IupConfig(rules=2, cuts=2), classes=2)
    >>> rows = np.array([[0.1, 0.2], [0.8, 0.9]])
    >>> said = learner.decide(rows, seeds_of(["p1", "p2"]))
    >>> _ = learner.learn(Labelled.of(said, truth=np.array([0, 1])))
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
        partners: int = 0,
    ) -> None:
        if len(rules) != config.rules:
            raise LearnerError(f"{len(rules)} rules given, IUP was set up for {config.rules}")
        self.space = space
        self.rules = tuple(rules)
        self.iup = Iup(space, config)
        self.filling = Moments(space)
        self.classes = classes
        self.lipschitz = lipschitz
        self.partners = partners

    @property
    def learns(self) -> bool:
        """Tell whether the features are needed again when the label comes: by a rule or a scale."""
        return bool(self.space.online) or any(rule.learns for rule in self.rules)

    @property
    def learning_rules(self) -> list[LearningRule]:
        """Return the rules that learn."""
        return [rule for rule in self.rules if isinstance(rule, LearningRule)]

    @property
    def joint(self) -> bool:
        """Tell whether a rule needs the other LLs' log-odds when the label comes."""
        return any(rule.joint for rule in self.learning_rules)

    def decide(self, rows: Floats, seeds: Seeds, pooled: Pooled | None = None) -> Predictions:
        """Predict a batch of (n, d) rows; raises RuleError if a rule fails on it.

        `pooled` stands in for what the learner itself knows, where partitions are pooled. A
        rule whose log-odds are the same for all labels, as before its first lesson, has no opinion;
        none has where all features are missing.
        """
        rules, filling = pooled or (self.rules, self.filling)
        choices = self.iup.decide(filling.space.unit(rows), seeds)
        gaps: Ints = np.isnan(rows).sum(axis=1)
        if not gaps.any():
            return self._ask(rules, rows, choices)
        predictions = self._ask(rules, filling.look(rows), choices)
        blind = gaps == self.space.d
        return Predictions(
            choices,
            np.where(blind, MISSING, predictions.labels),
            np.where(blind[:, None], MISSING, predictions.votes),
            np.where(blind[:, None], np.nan, predictions.log_odds),
            gaps,
        )

    def _ask(self, rules: Sequence[Rule], rows: Floats, choices: Choices) -> Predictions:
        """Ask every rule about complete rows."""
        votes = np.empty((len(rows), len(self.rules)), np.int64)
        log_odds = np.full((len(rows), self.classes), np.nan)
        for f, rule in enumerate(rules):
            if rule.learns:
                votes[:, f], odds = rule.judge(rows)
                undecided = odds.max(axis=1) - odds.min(axis=1) < _EVEN
                if undecided.any():
                    votes[undecided, f] = MISSING
                    odds = np.where(undecided[:, None], np.nan, odds)
                log_odds = np.where(choices.rules[:, None] == f, odds, log_odds)
            else:
                votes[:, f] = rule.predict(rows)
        labels = votes[np.arange(len(rows)), choices.rules]
        return Predictions(choices, labels, votes, log_odds)

    def learn(
        self,
        labelled: Labelled,
        lessons: Lessons | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Sequence[tuple[int, RuleError]]:
        """Take in labels of instances decided earlier: count them, then teach the rules, in order.

        `lessons` are needed if a rule learns. They may be fewer than the labels, where features
        were not kept for as long. If a rule fails on one, RuleError is raised, and other rules may
        have learned from it; with a `checkpoint` such lessons teach nothing, and are returned.
        """
        self._count(labelled)
        if not self.learns:
            return []
        if lessons is None:
            raise LearnerError("a rule that learns needs the features with the label")
        if checkpoint is None:
            self._teach(lessons)
            return []
        return sift(len(lessons.truth), lambda rows: self._try(lessons.part(rows), checkpoint))[1]

    def correct(self, back: Labelled, relabelled: Labelled) -> None:
        """Take back labels that were counted, and count others in their place.

        Rules that learn cannot unlearn, and the features are gone: they are taught nothing.
        """
        self._count(back, -1)
        self._count(relabelled)

    def _count(self, labelled: Labelled, sign: int = 1) -> None:
        """Count which rules were right; with `sign` -1, take it back."""
        if not len(labelled.truth):
            return
        correct: Bools = labelled.votes == labelled.truth[:, None]
        tried: Bools = labelled.votes != MISSING
        self.iup.learn(
            labelled.phase,
            labelled.cubes,
            labelled.rules,
            correct,
            None if tried.all() else tried,
            sign=sign,
        )

    def _try(self, lessons: Lessons, checkpoint: Checkpoint) -> None:
        """Teach the rules that learn; if one fails, all are as before."""
        try:
            self._teach(lessons)
        except RuleError:
            checkpoint.restore()
            raise
        checkpoint.save(len(lessons.truth))

    def _teach(self, lessons: Lessons) -> None:
        """Teach the rules that learn; if one fails, others may have learned already."""
        if not self.space.online or all(rule.scale_free for rule in self.learning_rules):
            if len(lessons.truth):
                self._teach_rules(lessons, self.filling.learn(lessons.rows))
            return
        # Rules that see scaled values learn each row as it was scaled by what was known before it.
        for k in range(len(lessons.truth)):
            lesson = lessons.part(slice(k, k + 1))
            self._teach_rules(lesson, self.filling.look(lesson.rows))
            self.filling.learn(lesson.rows)

    def _teach_rules(self, lessons: Lessons, rows: Floats) -> None:
        """Teach every rule that learns; `rows` are those of the lessons, without gaps."""
        for f, rule in enumerate(self.rules):
            if isinstance(rule, LearningRule):
                heard = lessons.heard(f, self.partners) if rule.joint else None
                rule.learn(rows, lessons.truth, heard)
