"""River's classifiers on the first pass of a stream: all features, and the same labels, just as
late.

Values are filled in and scaled online as for our rules, so that only the classifiers differ. The
best one of a stream is chosen in hindsight, which favours River. Forests are left out: a stream
would take minutes.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.confidence.streams import Stream
from experiments.single_pass.river_peers import BEST, ENSEMBLES, OURS, river_model
from learners.arrays.types import Floats
from learners.local.features import FeatureSpace
from learners.local.fill_and_scale import Moments
from learners.rules.expanded_columns import Columns
from learners.rules.scalers import make_scaler

CANDIDATES = (
    f"River logistic, SGD 0.02{OURS}",
    BEST,
    f"River logistic, SGD 0.1{OURS}",
    ENSEMBLES[0],
    ENSEMBLES[3],
)


class _Rows:
    """Turns rows into what River's models see: complete, expanded and scaled."""

    def __init__(self, space: FeatureSpace) -> None:
        self.names = space.expanded_names
        self._columns = Columns(space)
        self._filling, self._scaler = Moments(space), make_scaler("zscore", self._columns)

    def look(self, row: Floats) -> dict[str, float]:
        """Return a row that is only to be classified."""
        scaled = self._scaler.look(self._columns.raw(self._filling.look(row[None])))
        return self._named(scaled)

    def learn(self, row: Floats) -> dict[str, float]:
        """Return a row whose label has come."""
        scaled = self._scaler.learn(self._columns.raw(self._filling.learn(row[None])))
        return self._named(scaled)

    def _named(self, scaled: Floats) -> dict[str, float]:
        return dict(zip(self.names, scaled[0].tolist(), strict=True))


def river_chances(stream: Stream, names: Sequence[str] = CANDIDATES) -> dict[str, Floats]:
    """Return each classifier's chances (once, K) for the patients of the first pass."""
    classes = stream.data.classes
    rows = _Rows(stream.data.space())
    models = {name: river_model(name, classes) for name in names}
    chances = {name: np.empty((stream.once, classes)) for name in names}
    waiting: deque[int] = deque()
    for t in range(stream.once):
        x = rows.look(stream.data.rows[stream.patients[t]])
        for name, model in models.items():
            chances[name][t] = _chances(model, x, classes)
        waiting.append(t)
        if len(waiting) > stream.late:
            labelled = waiting.popleft()
            x = rows.learn(stream.data.rows[stream.patients[labelled]])
            for model in models.values():
                model.learn_one(x, int(stream.truth[labelled]))
    return chances


def _chances(model: Any, x: dict[str, float], classes: int) -> Floats:
    predicted = model.predict_proba_one(x)
    shares = np.array([predicted.get(k, 0.0) for k in range(classes)])
    total = shares.sum()
    return shares / total if total > 0 else np.full(classes, 1.0 / classes)
