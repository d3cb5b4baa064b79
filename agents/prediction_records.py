"""The predictions of a local learner, as the records that travel."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from agents.log_odds import LogOddsFormat
from learners.arrays.types import MISSING, Floats
from learners.local.learner import Confidence, Predictions
from schemas.records import Prediction
from settings.model import Settings


class PredictionRecords:
    """Builds the prediction records of one local learner."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._name = name
        self._labels = settings.labels
        self._log_odds = LogOddsFormat(settings)
        self._rules = list(settings.learners[name].rules)
        self._full = settings.learners[name].feedback == "full"

    def records(
        self,
        ids: Sequence[str],
        at: Sequence[int],
        subjects: Sequence[str | None],
        predictions: Predictions,
        confidence: Confidence,
        *,
        history: Sequence[bool],
        learned: int,
    ) -> Iterator[Prediction]:
        """Return one prediction per instance, all made after `learned` labels."""
        choices, labels, rules = predictions.choices, self._labels, self._rules
        # Columns in the order of the record's fields, so that no Python loop runs over the records.
        return map(
            Prediction,
            ids,
            repeat(self._name),
            [None if i == MISSING else labels[i] for i in predictions.labels.tolist()],
            repeat(choices.phase),
            map(str, choices.cubes.tolist()),
            [rules[i] for i in choices.rules.tolist()],
            choices.exploring.tolist(),
            choices.trials.tolist(),
            at,
            _known(confidence.accuracy),
            _known(confidence.low),
            _known(confidence.high),
            _known(confidence.epsilon),
            self._votes(predictions),
            self._log_odds.send(predictions.log_odds),
            repeat(0) if predictions.missing is None else predictions.missing.tolist(),
            subjects,
            history,
            repeat(learned),
        )

    def _votes(self, predictions: Predictions) -> Iterable[dict[str, str] | None]:
        if not self._full:
            return repeat(None)
        labels, rules = self._labels, self._rules
        return [
            {rule: labels[i] for rule, i in zip(rules, row, strict=True) if i != MISSING}
            for row in predictions.votes.tolist()
        ]


def _known(column: Floats) -> list[float | None]:
    """Return a column as records hold it: None where unknown."""
    values: list[float | None] = column.tolist()
    for unknown in np.flatnonzero(~np.isfinite(column)).tolist():
        values[unknown] = None
    return values
