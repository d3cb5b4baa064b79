"""What every prediction rule of a local learner has in common.

A rule maps rows to labels. Rows are an (n, d) float matrix in the order of the learner's features:
a real feature holds its raw value, a categorical one the index of its category.

A rule that learns is a fold over labelled rows, one after the other: the same rows in the same
order give the same bits, however they were cut into batches. So a replay rebuilds it exactly.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from learners.types import Floats, Ints, State


class RuleError(Exception):
    """A rule failed on a batch: it raised, or returned something that is no label."""


class Rule(ABC):
    """A classifier over a learner's own features."""

    learns: ClassVar[bool] = False

    @abstractmethod
    def predict(self, rows: Floats) -> Ints:
        """Return one label index per row."""

    def log_odds(self, rows: Floats) -> Floats:
        """Return (n, K) log-odds of each label against the others; nan where the rule has none."""
        return np.full((len(rows), 1), np.nan)


class LearningRule(Rule):
    """A rule that learns online from the labels of its learner's instances."""

    learns: ClassVar[bool] = True

    @abstractmethod
    def learn(self, rows: Floats, truth: Ints) -> None:
        """Take in labelled rows, in order."""

    @abstractmethod
    def state(self) -> State:
        """Return all that was learned, as named arrays."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
