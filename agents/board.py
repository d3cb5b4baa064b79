"""The score so far: error rates, weights, exploration, regret with its bound. Pure arithmetic.

Everything comes from the exactly-once state and so survives restarts; the weights are those of the
latest diagnosis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agents.local_learner import EXPLORED, INSTANCES, LABELLED
from learners.bounds import contextual_hedge_regret, hedge_regret
from learners.metrics import rates
from learners.regret import contextual_regret
from learners.types import Ints
from schemas.records import Diagnosis
from streams.settings import Settings

ENSEMBLE = "ensemble"
_BOUNDED = ("ah", "wm", "ch", "ch-vote", "odds", "committee")
"""Modes whose weights are Hedge's, so that Theorem 2 (or 4) speaks about them."""


@dataclass(frozen=True)
class Board:
    """The figures. Rates are None where nothing was labelled yet.

    labelled      labels that were learned from
    rates, recent by name, the ensemble first: PER, FPR and FNR, of all and of the last 1000
    regret        had one expert been drawn by its weight each time: expected errors, less those of
                  the expert with the fewest (in each context cube)
    bound         what theory allows it to be; None where the mode has no such promise
    exploration   the share of each learner's decisions that were explorations
    """

    labelled: int = 0
    rates: dict[str, dict[str, float | None]] = field(default_factory=dict)
    recent: dict[str, dict[str, float | None]] = field(default_factory=dict)
    regret: float | None = None
    bound: float | None = None
    weights: dict[str, float] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)
    learned: dict[str, int] = field(default_factory=dict)
    exploration: dict[str, float | None] = field(default_factory=dict)

    @property
    def learners(self) -> list[str]:
        """Return the local learners."""
        return [name for name in self.rates if name != ENSEMBLE]

    @property
    def best(self) -> str | None:
        """Return the learner with the lowest error rate, if any was labelled."""
        known = [name for name in self.learners if self.rates[name]["per"] is not None]
        return min(known, key=lambda name: self.rates[name]["per"] or 0.0, default=None)


def score(
    settings: Settings,
    scores: Mapping[int, Ints],
    regret: Mapping[int, Ints],
    totals: Mapping[str, Ints],
    *,
    recent: Ints | None = None,
    latest: Diagnosis | None = None,
) -> Board:
    """Work out the figures from rows of the ensemble's and the learners' tables.

    scores   confusion counts by scope: the ensemble, then each learner
    regret   by context cube: labelled instances, expected loss in parts, errors of each expert
    totals   the totals of each learner
    recent   (scopes, K, K) confusion counts of the last labelled instances
    """
    names = [ENSEMBLE, *settings.learners]
    K = len(settings.labels)
    empty = np.zeros(K * K, np.int64)
    counts = np.array([scores.get(i, empty) for i in range(len(names))]).reshape(-1, K, K)
    loss, bound = _regret(settings, regret)
    return Board(
        labelled=int(counts[0].sum()),
        rates=_rates(settings, names, counts),
        recent={} if recent is None else _rates(settings, names, recent),
        regret=loss,
        bound=bound,
        weights=dict(latest.weights) if latest else {},
        instances={name: int(row[INSTANCES]) for name, row in totals.items()},
        learned={name: int(row[LABELLED]) for name, row in totals.items()},
        exploration={
            name: float(row[EXPLORED] / row[INSTANCES]) if row[INSTANCES] else None
            for name, row in totals.items()
        },
    )


def _rates(
    settings: Settings, names: Sequence[str], counts: Ints
) -> dict[str, dict[str, float | None]]:
    found = rates(counts, settings.labels.index(settings.positive))
    columns = {"per": found.per, "fpr": found.fpr, "fnr": found.fnr}
    return {
        name: {key: _known(column[i]) for key, column in columns.items()}
        for i, name in enumerate(names)
    }


def _known(number: Any) -> float | None:
    return None if np.isnan(number) else float(number)


def _regret(settings: Settings, rows: Mapping[int, Ints]) -> tuple[float | None, float | None]:
    """Return the pseudo-regret and its bound."""
    if not rows:
        return None, None
    table = np.stack(list(rows.values()))
    labelled, expected, losses = int(table[:, 0].sum()), table[:, 1].sum(), table[:, 2:]
    regret = float(contextual_regret(expected, losses))
    experts = losses.shape[1]
    ensemble = settings.ensemble
    plain = ensemble.eta_scale in (None, 1.0) and "rate" not in ensemble.options
    if ensemble.mode not in _BOUNDED or not plain:
        return regret, None
    if ensemble.context is None:
        return regret, float(hedge_regret(labelled, experts))
    return regret, float(contextual_hedge_regret(labelled, experts, len(table)))
