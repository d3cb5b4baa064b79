"""Learning beside others: several learners fit one model, each its own part of the log-odds.

With a label comes what the other learners said when the decision was made. If many patients wait
for their labels at a time, all learners have learned from the same labels since, so that the
opinion is out of date: each learner alone would explain what the others have explained by now, and
their sum would overshoot. What the others have learned since is not known here; but a learner knows
how its own log-odds of that row have changed, and the others learned from the same labels. So it
assumes that the other P learners have changed as it has itself:

    o(now) = o(then) + P (a(now) - a(then))

where a are its own log-odds and o those of the others together. If labels come at once, nothing has
changed and the correction is zero.

That is right for learners that see the same in different words. Of learners that see different
things, what one has learned says little about the others, and the correction is noise. So a learner
may measure instead how far the others go along with it (`Following`): b, the slope of the line
through zero that best tells what they said from what it said itself takes the place of P.

Rows are taken one after the other, because a(now) is taken after all earlier rows, so the result
does not depend on how the stream is cut into batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from learners.arrays.types import Floats
from learners.rules.odds import heads


class Heard(NamedTuple):
    """What a joint rule hears with the labels of n rows.

    others        (n, K) the other learners' log-odds together, when the decision was made
    own_log_odds  (n, K) those of the rule itself then; nan where it had not been asked
    partners      how many of the other learners learn jointly as well
    """

    others: Floats
    own_log_odds: Floats
    partners: int = 0

    @classmethod
    def fresh(cls, log_odds: Floats) -> "Heard":
        """Return opinions that are not out of date."""
        return cls(log_odds, np.full(log_odds.shape, np.nan))


AT_FIRST = 0.5
"""How far each of the others is believed to go along before anything was heard."""


class Following:
    """How far the others' log-odds have gone along with a learner's own, on labelled rows so far.

    b = (AT_FIRST P + sum of a o) / (1 + sum of a a)
    """

    def __init__(self, along: float = 0.0, own: float = 0.0) -> None:
        self.along, self.own = along, own

    def slope(self, partners: float) -> float:
        """Return b."""
        return (AT_FIRST * partners + self.along) / (1.0 + self.own)

    def add(self, others: Sequence[float], own: Sequence[float]) -> None:
        """Count the log-odds of one row."""
        for o, a in zip(others, own, strict=True):
            self.along += a * o
            self.own += a * a


class Steps(ABC):
    """A rule that learns from labelled rows one by one, each looked at just before."""

    @abstractmethod
    def look(self, row: int) -> list[float]:
        """Return the log-odds of the next row, one for each head; rows must come in order."""

    @abstractmethod
    def learn(self, offsets: list[float]) -> None:
        """Learn from the row looked at last, beside the others' log-odds for each head."""


def learn_beside(
    steps: Steps, heard: Heard, classes: int, following: Following | None = None
) -> None:
    """Let a rule learn from all rows, each beside what the others would say now."""
    odds_columns = slice(-heads(classes), None)
    opinions, partners = heard.own_log_odds[:, odds_columns], float(heard.partners)
    usable = np.asarray(~np.isnan(opinions).any(axis=1) & (partners > 0.0))
    rows = zip(
        heard.others[:, odds_columns].tolist(), opinions.tolist(), usable.tolist(), strict=True
    )
    for row, (offsets, then, comparable) in enumerate(rows):
        now = steps.look(row)
        if not comparable:
            steps.learn(offsets)
            continue
        along = partners if following is None else following.slope(partners)
        triples = zip(offsets, now, then, strict=True)
        steps.learn([o + along * (a - b) for o, a, b in triples])
        if following is not None:
            following.add(offsets, then)
