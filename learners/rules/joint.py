"""Learning beside others: several learners fit one model, each its own part of the log-odds.

With a label comes what the other learners said when the decision was made. If many patients wait
for their labels at a time, all learners have learned from the same labels since, so that the
opinion is out of date: each learner alone would explain what the others have explained by now, and
their sum would overshoot. What the others have learned since is not known here; but a learner knows
how its own log-odds of that row have changed, and the others learned from the same labels. So it
takes the other P learners to have changed as it has itself:

    o(now) = o(then) + P (a(now) - a(then))

where a are its own log-odds and o those of the others together. If labels come at once, nothing has
changed and the correction is zero.

Rows are taken one after the other, because a(now) is that after all earlier rows: so the result
does not depend on how the stream is cut into batches.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from learners.arrays.types import Floats
from learners.rules.odds import heads


class Heard(NamedTuple):
    """What a joint rule hears with the labels of n rows.

    others     (n, K) the other learners' log-odds together, when the decision was made
    said       (n, K) what the rule itself had said then; nan where it had not been asked
    partners   how many of the other learners learn jointly as well
    """

    others: Floats
    said: Floats
    partners: int = 0

    @classmethod
    def fresh(cls, others: Floats) -> "Heard":
        """Return opinions that are not out of date."""
        return cls(others, np.full(others.shape, np.nan))


class Steps(ABC):
    """A rule that learns from labelled rows one by one, each looked at just before."""

    @abstractmethod
    def look(self, row: int) -> list[float]:
        """Return the log-odds of the next row, one for each head; rows must come in order."""

    @abstractmethod
    def learn(self, others: list[float]) -> None:
        """Learn from the row looked at last, beside the others' log-odds for each head."""


def learn_beside(steps: Steps, heard: Heard, classes: int) -> None:
    """Let a rule learn from all rows, each beside what the others would say now."""
    shown = slice(-heads(classes), None)
    said, partners = heard.said[:, shown], float(heard.partners)
    known = np.asarray(~np.isnan(said).any(axis=1) & (partners > 0.0))
    rows = zip(heard.others[:, shown].tolist(), said.tolist(), known.tolist(), strict=True)
    for row, (others, then, comparable) in enumerate(rows):
        now = steps.look(row)
        if comparable:
            each = zip(others, now, then, strict=True)
            steps.learn([o + partners * (a - b) for o, a, b in each])
        else:
            steps.learn(others)
