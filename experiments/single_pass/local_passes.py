"""Local learners (LLs) in a single pass, one instance at a time, as in the product."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.single_pass.orders import Order, make_order
from learners.arrays.types import Bools, Floats, Ints
from learners.fusion.ballot_log_odds import log_odds_of_others
from learners.fusion.base import Ballot
from learners.local.iup import Feedback, IupConfig
from learners.local.learner import Labelled, Lessons, LocalLearner, Predictions, opinion
from learners.local.phases import Horizon
from learners.rules.registry import is_joint, make_rule


@dataclass(frozen=True)
class Recipe:
    """How every LL is set up: its rules as in the settings file, and IUP's settings.

    IUP's defaults are those that `hb init` proposes, except for `cuts`: with one rule there is
    nothing to choose between. `corrected` says whether joint rules assume that late opinions have
    changed since.
    """

    rules: tuple[Mapping[str, Any], ...] = ({"kind": "committee", "preset": "kdi"},)
    cuts: int = 1
    exploration: float = 0.01
    backoff: float = 20.0
    feedback: Feedback = Feedback.FULL
    options: Mapping[str, Any] = field(default_factory=dict)
    corrected: bool = True

    def learner(self, order: Order, columns: Ints) -> LocalLearner:
        """Return an untrained LL for some of the features: one of the LLs of the order."""
        space = order.data.space(columns)
        rules = [make_rule(rule, space, order.data.labels) for rule in self.rules]
        config = IupConfig(
            rules=len(rules),
            clock=Horizon(10_000),
            exploration=self.exploration,
            feedback=self.feedback,
            cuts=self.cuts,
            backoff=self.backoff,
            **self.options,
        )
        joint = self.corrected and any(map(is_joint, self.rules))
        partners = len(order.columns) - 1 if joint else 0
        return LocalLearner(space, rules, config, classes=order.data.classes, partners=partners)


@dataclass(frozen=True)
class Heard:
    """The predictions of M LLs in one pass: labels and accuracy (N, M), log-odds (N, M, K)."""

    labels: Ints
    rules: Ints
    exploring: Bools
    accuracy: Floats
    log_odds: Floats


@dataclass(frozen=True)
class Task:
    """A pass to run, as plain data that can be sent to another process.

    late   how many patients come between a patient and its label
    """

    data: str
    seed: int
    number: int
    recipe: Recipe = field(default_factory=Recipe)
    learners: int = 3
    flipped: float = 0.0
    late: int = 0

    def order(self) -> Order:
        """Return the order of the pass."""
        return make_order(
            self.data, self.seed, self.number, learners=self.learners, flipped=self.flipped
        )


def listen(task: Task) -> Heard:
    """Run one pass with all LLs."""
    order = task.order()
    learners = [task.recipe.learner(order, mine) for mine in order.columns]
    if any(learner.joint for learner in learners):
        return together(learners, order, task.late)
    parts = [
        _pass(learner, order, mine, task.late)
        for learner, mine in zip(learners, order.columns, strict=True)
    ]
    return Heard(
        np.stack([heard.labels for heard in parts], axis=1),
        np.stack([heard.rules for heard in parts], axis=1),
        np.stack([heard.exploring for heard in parts], axis=1),
        np.stack([heard.accuracy for heard in parts], axis=1),
        np.stack([heard.log_odds for heard in parts], axis=1),
    )


def _pass(learner: LocalLearner, order: Order, columns: Ints, late: int = 0) -> Heard:
    """Run one pass with one LL; the arrays have no axis for LLs."""
    rows = np.ascontiguousarray(order.rows[:, columns])
    n = len(rows)
    labels, rules, exploring = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
    accuracy, odds = np.empty(n), np.empty((n, order.data.classes))
    waiting: deque[Predictions] = deque()
    for t in range(n):
        prediction = learner.decide(rows[t : t + 1], order.seeds[t : t + 1])
        chosen = prediction.choices
        labels[t], rules[t], exploring[t] = (
            prediction.labels[0],
            chosen.rules[0],
            chosen.exploring[0],
        )
        accuracy[t], odds[t] = chosen.accuracy[0], prediction.log_odds[0]
        waiting.append(prediction)
        if t >= late:
            at = slice(t - late, t - late + 1)
            truth = order.told[at]
            learner.learn(Labelled.of(waiting.popleft(), truth), Lessons(rows[at], truth))
    return Heard(labels, rules, exploring, accuracy, odds)


def together(learners: Sequence[LocalLearner], order: Order, late: int = 0) -> Heard:
    """Run one pass with LLs that are sent the others' predictions, as by the EL."""
    n, M, K = len(order.patients), len(learners), order.data.classes
    rows = [np.ascontiguousarray(order.rows[:, columns]) for columns in order.columns]
    heard = Heard(
        np.empty((n, M), np.int64), np.empty((n, M), np.int64), np.empty((n, M), np.bool_),
        np.empty((n, M)), np.empty((n, M, K)),
    )  # fmt: skip
    waiting: deque[list[Predictions]] = deque()
    for t in range(n):
        at = slice(t, t + 1)
        predictions = [
            learner.decide(own[at], order.seeds[at])
            for learner, own in zip(learners, rows, strict=True)
        ]
        heard.labels[t] = [prediction.labels[0] for prediction in predictions]
        heard.rules[t] = [prediction.choices.rules[0] for prediction in predictions]
        heard.exploring[t] = [prediction.choices.exploring[0] for prediction in predictions]
        heard.accuracy[t] = [prediction.choices.accuracy[0] for prediction in predictions]
        heard.log_odds[t] = [prediction.log_odds[0] for prediction in predictions]
        waiting.append(predictions)
        if t >= late:
            truth = order.told[t - late : t - late + 1]
            lessons = _lessons(rows, order, heard, t - late)
            for learner, prediction, lesson in zip(
                learners, waiting.popleft(), lessons, strict=True
            ):
                learner.learn(Labelled.of(prediction, truth), lesson)
    return heard


def _lessons(rows: Sequence[Floats], order: Order, heard: Heard, t: int) -> Iterator[Lessons]:
    """Return each LL's lesson when the label of patient t comes, with what all had said."""
    at = slice(t, t + 1)
    odds = heard.log_odds[at]
    ballot = Ballot.of(
        heard.labels[at], order.seeds[at], classes=order.data.classes, accuracy=heard.accuracy[at],
        log_odds=odds,
    )  # fmt: skip
    log_odds = log_odds_of_others(ballot)
    for i, own in enumerate(rows):
        own_opinion = opinion(odds[:, i], heard.labels[at, i])
        yield Lessons(own[at], order.told[at], log_odds[:, i], own_opinion, heard.rules[at, i])
