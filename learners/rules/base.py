"""What every prediction rule of a local learner has in common.

A rule maps rows to labels. Rows are an (n, d) float matrix in the order of the learner's features:
a real feature holds its raw value, a categorical one the index of its category. Labels are indices
0 … K-1 of the ensemble's labels.

The public methods hold the shared policy, the private ones what differs. A rule that raises, or
returns something that is no label, becomes a `RuleError` that says which rule, what kind of error
and in which line, and never a feature value: the original message may quote one, so it is dropped.

A rule that learns is a fold over labelled rows, one after the other: the same rows in the same
order give the same bits, however they were cut into batches. So a replay rebuilds it exactly (on
the same machine and numpy; other processors may round sines and exponentials differently). Its
predictions, too, do not depend on which other rows are in the batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.rules.calls import CURRENT
from learners.rules.joint import Heard, Steps, learn_beside

_Result = TypeVar("_Result")


class RuleError(Exception):
    """A rule failed on a batch: it raised, or returned something that is no label."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(rule, reason)
        self.rule = rule
        self.reason = reason

    def __str__(self) -> str:
        return f"rule {self.rule} {self.reason}"


class Rule(ABC):
    """A classifier over a learner's own features.

    name         what messages and predictions call it
    classes      K, the number of labels
    scale_free   it sees only raw values; otherwise its learner must mind scales that are learned
    """

    learns: ClassVar[bool] = False
    additive: bool = False
    """Whether its log-odds are a sum over features, or have a part that is (`parts`)."""
    scale_free: bool = False

    def __init__(self, name: str, classes: int) -> None:
        if classes < 2:
            raise LearnerError(f"rule {name}: there must be at least two labels")
        self.name = name
        self.classes = classes

    def predict(self, rows: Floats) -> Ints:
        """Return one label index per row."""
        return self._checked_labels(self._guard(self._predict, rows), len(rows))

    def log_odds(self, rows: Floats) -> Floats:
        """Return (n, K) log-odds of each label against the others; nan where the rule has none."""
        return self._checked_odds(self._guard(self._log_odds, rows), len(rows))

    def parts(self, rows: Floats) -> Floats:
        """Return (n, d, K): what each feature adds to the log-odds, if the rule is additive.

        What they leave is the same for all patients, or cannot be ascribed to a single feature.
        """
        parts = self._guard(self._parts, rows)
        if parts.ndim != 3 or (len(parts), parts.shape[2]) != (len(rows), self.classes):
            raise RuleError(self.name, f"returned no parts of {len(rows)} x {self.classes} odds")
        return parts

    def judge(self, rows: Floats) -> tuple[Ints, Floats]:
        """Return what `predict` and `log_odds` return, at the cost of one of them."""
        return self.predict(rows), self.log_odds(rows)

    @abstractmethod
    def _predict(self, rows: Floats) -> Ints:
        """Return the labels; may raise anything."""

    def _log_odds(self, rows: Floats) -> Floats:
        return np.full((len(rows), self.classes), np.nan)

    def _parts(self, rows: Floats) -> Floats:
        """Return the parts; every additive rule has its own."""
        raise NotImplementedError(type(self).__name__)

    def _guard(self, step: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a step of the rule and turn whatever it raises into a RuleError."""
        try:
            with CURRENT.of(self.name):
                return step(*arguments)
        except RuleError:
            raise
        except Exception as error:  # noqa: BLE001 - a rule is foreign code and may raise anything
            reason = f"raised {type(error).__name__}{_place(error.__traceback__)}"
        raise RuleError(self.name, reason)

    def _checked_labels(self, labels: Any, n: int) -> Ints:
        array = np.asarray(labels)
        if array.shape != (n,) or array.dtype.kind not in "iu":
            raise RuleError(self.name, f"returned no {n} label indices")
        if n and not (array.min() >= 0 and array.max() < self.classes):
            raise RuleError(self.name, "returned a label outside the set")
        return array.astype(np.int64, copy=False)

    def _checked_odds(self, odds: Floats, n: int) -> Floats:
        if odds.shape != (n, self.classes):
            raise RuleError(self.name, f"returned no {n} x {self.classes} log-odds")
        if self.learns and not np.isfinite(odds).all():
            raise RuleError(self.name, "returned log-odds that are not finite")
        return odds


class LearningRule(Rule):
    """A rule that learns online from the labels of its learner's instances.

    It predicts the label of the largest log-odds; equal ones go to the smaller index.

    exact      equal histories give equal states, bit for bit; if not, only equal predictions
    fallible   learning runs foreign code that may raise on checked rows
    joint      learns what the other learners leave unexplained: its log-odds are a part that is
               added to theirs, so with each label it is given their log-odds (`Heard`)
    """

    learns: ClassVar[bool] = True
    exact: bool = True
    fallible: bool = False
    joint: bool = False

    def __init__(self, name: str, space: FeatureSpace, classes: int) -> None:
        super().__init__(name, classes)
        self.space = space

    def judge(self, rows: Floats) -> tuple[Ints, Floats]:
        """Return labels and log-odds from one pass."""
        odds = self.log_odds(rows)
        return odds.argmax(axis=1), odds

    def _predict(self, rows: Floats) -> Ints:
        return self.judge(rows)[0]

    @abstractmethod
    def _log_odds(self, rows: Floats) -> Floats:
        """Return (n, K) finite log-odds."""

    def learn(self, rows: Floats, truth: Ints, heard: Heard | None = None) -> None:
        """Take in labelled rows, in order. What is refused leaves the rule as it was.

        A joint rule that hears nothing takes the other learners' log-odds to be zero.
        """
        self.space.check(rows)
        if truth.shape != (len(rows),) or truth.dtype.kind not in "iu":
            raise LearnerError(f"rule {self.name}: learning needs one label index per row")
        if not len(rows):
            return
        if truth.min() < 0 or truth.max() >= self.classes:
            raise LearnerError(f"rule {self.name}: a label to learn from is outside the set")
        if not self.joint or heard is None:
            self._guard(self._learn, rows, truth)
            return
        shape = (len(rows), self.classes)
        if heard.others.shape != shape or not np.isfinite(heard.others).all():
            raise LearnerError(f"rule {self.name}: the others' log-odds must be finite")
        if heard.own_log_odds.shape != shape or np.isinf(heard.own_log_odds).any():
            raise LearnerError(f"rule {self.name}: its own log-odds must be numbers or nan")
        self._guard(self._learn_beside, rows, truth, heard)

    @abstractmethod
    def _learn(self, rows: Floats, truth: Ints) -> None:
        """Fold in at least one checked row."""

    def _learn_beside(self, rows: Floats, truth: Ints, heard: Heard) -> None:
        """Fold in checked rows beside what the other learners say."""
        learn_beside(self.steps(rows, truth), heard, self.classes)

    def steps(self, rows: Floats, truth: Ints) -> Steps:
        """Return what folds in checked rows one by one; every joint rule has its own."""
        raise NotImplementedError(type(self).__name__)

    @abstractmethod
    def state(self) -> State:
        """Return everything learned, as named arrays that later learning does not change."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Put back what `state` returned."""

    @property
    def averages(self) -> bool:
        """Whether what several partitions learned can be combined by `average`."""
        return True

    def average(self, states: Sequence[State], counts: Sequence[int]) -> State:
        """Combine what several partitions learned from `counts` rows each.

        Weights become their count-weighted mean, statistics (counts, moments, ranks) add up and
        beliefs multiply, so the result is near, but not equal to, what one partition would have
        learned from all rows. A partition without rows does not matter.
        """
        if not self.averages:
            raise LearnerError(
                f"rule {self.name} cannot be combined over partitions; run its learner with one"
            )
        if not states or len(states) != len(counts) or min(counts) < 0:
            raise LearnerError(f"rule {self.name}: average needs one count per state")
        used = [(state, count) for state, count in zip(states, counts, strict=True) if count]
        if len(used) < 2:
            single = used[0][0] if used else states[0]
            return {key: value.copy() for key, value in single.items()}
        total = sum(counts)
        return self._average([s for s, _ in used], [count / total for _, count in used])

    def _average(self, states: Sequence[State], shares: Sequence[float]) -> State:
        """Combine two or more states whose shares of the rows sum to one."""
        raise NotImplementedError(type(self).__name__)


def _place(traceback: TracebackType | None) -> str:
    """Return ` at file:line` of the innermost frame: where to look, without the message."""
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f" at {Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"
