"""The reasons of a local learner's predictions, as the records that travel."""

from collections.abc import Iterator, Sequence

import numpy as np

from agents.log_odds import LogOddsFormat
from learners.local.learner import Predictions
from learners.local.reasons import Reasons
from schemas import records
from settings.model import Settings


class ReasonRecords:
    """Builds the records of reasons of one local learner."""

    def __init__(self, settings: Settings, name: str) -> None:
        learner = settings.learners[name]
        self._features = [feature.name for feature in learner.features]
        self._rules = list(learner.rules)
        self._log_odds = LogOddsFormat(settings)

    def records(
        self, ids: Sequence[str], at: Sequence[int], predictions: Predictions, why: Reasons
    ) -> Iterator[records.Reasons]:
        """Return one record for each prediction that has reasons."""
        columns = np.concatenate([why.log_odds[:, None], why.rest[:, None], why.parts], axis=1)
        for k, row in zip(why.at.tolist(), columns, strict=True):
            log_odds, remainder, *parts = (
                self._log_odds.shorten(odds) or () for odds in row.tolist()
            )
            named = dict(zip(self._features, parts, strict=True))
            rule = self._rules[int(predictions.choices.rules[k])]
            yield records.Reasons(ids[k], rule, log_odds, named, remainder, at[k])
