"""What a local learner says about instances, as the records that travel."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from agents.log_odds import LogOddsFormat
from learners.arrays.types import Floats
from learners.local.learner import Confidence, Predictions
from schemas.records import Prediction
from settings.model import Settings


class Sayings:
    """Makes predictions of one local learner."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._name = name
        self._labels = settings.labels
        self._log_odds = LogOddsFormat(settings)
        self._rules = list(settings.learners[name].rules)
        self._full = settings.learners[name].feedback == "full"

    def records(
        self, ids: Sequence[str], at: Sequence[int], said: Predictions, sure: Confidence
    ) -> Iterator[Prediction]:
        """Return one prediction per instance."""
        chosen, labels, rules = said.choices, self._labels, self._rules
        # Columns, in the order of the record's fields: so no loop of ours goes over the records.
        return map(
            Prediction,
            ids,
            repeat(self._name),
            [labels[i] for i in said.labels.tolist()],
            repeat(chosen.phase),
            map(str, chosen.cubes.tolist()),
            [rules[i] for i in chosen.rules.tolist()],
            chosen.exploring.tolist(),
            chosen.trials.tolist(),
            at,
            _known(sure.accuracy),
            _known(sure.low),
            _known(sure.high),
            _known(sure.epsilon),
            self._votes(said),
            self._log_odds.send(said.log_odds),
        )

    def _votes(self, said: Predictions) -> Iterable[dict[str, str] | None]:
        if not self._full:
            return repeat(None)
        named = [[self._labels[i] for i in row] for row in said.votes.tolist()]
        return [dict(zip(self._rules, row, strict=True)) for row in named]


def _known(column: Floats) -> list[float | None]:
    """Return a column as records hold it: None where it is not known."""
    values: list[float | None] = column.tolist()
    for unknown in np.flatnonzero(~np.isfinite(column)).tolist():
        values[unknown] = None
    return values
