"""Scores so far: error rates, accuracies, weights, regret with its bounds. Pure arithmetic.

Everything is computed from integers of the exactly-once state, so it survives restarts; the weights
are those of the latest diagnosis.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import exp
from typing import Any

import numpy as np

from agents.totals import (
    CUBES,
    EXPLORED,
    INSTANCES,
    LABELLED,
    LOST,
    PREDICTED,
    THIN,
    EnsembleTotals,
    local_width,
)
from learners.arrays.shares import UNIT
from learners.arrays.types import Ints
from learners.fusion.fnr_control import Controlled
from learners.scores.error_rates import rates
from learners.theory.intervals import accuracy_interval
from learners.theory.promises import bound_so_far, ensemble_bound
from learners.theory.regret import awake_regret
from settings.building import fusion, local_learner
from settings.model import Settings

ENSEMBLE = "ensemble"
BEST, BEST_PER_CONTEXT, ORACLE = "best_learner", "best_learner_per_context", "local_oracle"
"""What regret is measured against: see docs/metrics.md."""


@dataclass(frozen=True)
class Regret:
    """Errors beyond those of a comparator; `bound` is None where theory gives no bound.

    `learner` is empty except for the regret of a local learner against its own oracle.
    """

    comparator: str
    value: float
    bound: float | None
    learner: str = ""


@dataclass(frozen=True)
class Accuracy:
    """A share of right predictions, with an interval that covers the truth at all times at 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """All scores. Rates are None where nothing was labelled yet.

    labels        the names of the labels, in the settings' order
    labelled      labels that were learned from
    rates, recent by name, the ensemble first: PER, FPR and FNR, over all and over the last 1000
    confusion     by name: counts of truth by prediction, in the order of `labels`
    accuracy      by name, where anything was labelled
    regret        expected errors, had one expert been drawn by its weight each time, minus those of
                  the expert with the fewest (in each context cube)
    bound         its upper bound by theory; None where the mode has none
    regrets       all regrets, including that one
    error_bounds  by comparator: the error rate that the bound on regret allows
    exploration   the share of each learner's decisions that explored
    predicted     by name: how often each label was predicted, labelled or not
    thin          each learner's decisions from cubes with few trials
    cubes         cubes that each learner has counts for, counted once per partition
    disagreements diagnoses whose learners did not all agree
    targets       the rates that the settings ask for: `per`, `fnr`
    threshold     the probability from which FNR control answers with the positive label
    """

    labels: list[str] = field(default_factory=list)
    labelled: int = 0
    rates: dict[str, dict[str, float | None]] = field(default_factory=dict)
    recent: dict[str, dict[str, float | None]] = field(default_factory=dict)
    confusion: dict[str, Ints] = field(default_factory=dict)
    accuracy: dict[str, Accuracy] = field(default_factory=dict)
    regret: float | None = None
    bound: float | None = None
    regrets: list[Regret] = field(default_factory=list)
    error_bounds: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)
    learned: dict[str, int] = field(default_factory=dict)
    exploration: dict[str, float | None] = field(default_factory=dict)
    predicted: dict[str, dict[str, int]] = field(default_factory=dict)
    thin: dict[str, int] = field(default_factory=dict)
    cubes: dict[str, int] = field(default_factory=dict)
    disagreements: int = 0
    targets: dict[str, float] = field(default_factory=dict)
    threshold: float | None = None

    @property
    def learners(self) -> list[str]:
        """Return the local learners."""
        return [name for name in self.rates if name != ENSEMBLE]

    @property
    def best(self) -> str | None:
        """Return the learner with the lowest error rate, if any was labelled."""
        known = [name for name in self.learners if self.rates[name]["per"] is not None]
        return min(known, key=lambda name: self.rates[name]["per"] or 0.0, default=None)


@dataclass(frozen=True)
class Sums:
    """Rows of the state's tables, each the sum over all partitions.

    scores   confusion counts by scope: the ensemble, then each learner
    regret   by context cube, as `EnsembleLearner.regret`
    totals   the totals of each learner
    ensemble the totals of the ensemble
    recent   (scopes, K, K) confusion counts of the last labelled instances
    weights  each expert's share of the latest diagnosis, in parts
    control  FNR control's counts by context cube
    """

    scores: Mapping[int, Ints] = field(default_factory=dict)
    regret: Mapping[int, Ints] = field(default_factory=dict)
    totals: Mapping[str, Ints] = field(default_factory=dict)
    ensemble: EnsembleTotals | None = None
    recent: Ints | None = None
    weights: Ints | None = None
    control: Mapping[int, Ints] = field(default_factory=dict)


class Scorer:
    """Computes the scores of one ensemble; what depends on the settings alone is computed once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._labels = list(settings.labels)
        self._names = [ENSEMBLE, *settings.learners]
        self._positive = self._labels.index(settings.positive)
        self._fusion = fusion(settings)
        self._experts = self._fusion.experts(list(settings.learners))
        self._control = self._fusion.control if isinstance(self._fusion, Controlled) else None
        self._learners = {name: local_learner(settings, name) for name in settings.learners}

    def board(self, sums: Sums) -> Scores:
        """Return the scores of a state."""
        K = len(self._labels)
        empty = np.zeros(K * K, np.int64)
        rows = [sums.scores.get(i, empty) for i in range(len(self._names))]
        counts = np.array(rows).reshape(-1, K, K)
        totals = {name: sums.totals.get(name, self._nothing) for name in self._settings.learners}
        regrets = self._regrets(sums)
        main = next(iter(regrets), None)
        return Scores(
            labels=self._labels,
            labelled=int(counts[0].sum()),
            rates=self._rates(counts),
            recent={} if sums.recent is None else self._rates(sums.recent),
            confusion=dict(zip(self._names, counts, strict=True)),
            accuracy=self._accuracy(counts),
            regret=None if main is None else main.value,
            bound=None if main is None else main.bound,
            regrets=[*regrets, *self._oracles(totals)],
            error_bounds=_error_bounds(sums, regrets),
            weights=self._weights(sums.weights),
            instances=_column(totals, INSTANCES),
            learned=_column(totals, LABELLED),
            exploration={
                name: float(row[EXPLORED] / row[INSTANCES]) if row[INSTANCES] else None
                for name, row in totals.items()
            },
            predicted=self._predicted(sums, totals),
            thin=_column(totals, THIN),
            cubes=_column(totals, CUBES),
            disagreements=0 if sums.ensemble is None else sums.ensemble.disagreements,
            targets=self._targets,
            threshold=self._threshold(sums.control),
        )

    @cached_property
    def _nothing(self) -> Ints:
        return np.zeros(local_width(self._settings), np.int64)

    def _rates(self, counts: Ints) -> dict[str, dict[str, float | None]]:
        errors = rates(counts, self._positive)
        columns = {"per": errors.per, "fpr": errors.fpr, "fnr": errors.fnr}
        return {
            name: {key: _known(column[i]) for key, column in columns.items()}
            for i, name in enumerate(self._names)
        }

    def _accuracy(self, counts: Ints) -> dict[str, Accuracy]:
        trials, hits = counts.sum(axis=(1, 2)), np.trace(counts, axis1=1, axis2=2)
        low, high = accuracy_interval(trials, hits)
        return {
            name: Accuracy(float(hits[i] / trials[i]), float(low[i]), float(high[i]))
            for i, name in enumerate(self._names)
            if trials[i]
        }

    def _weights(self, parts: Ints | None) -> dict[str, float]:
        if parts is None:
            return {}
        return dict(zip(self._experts, (parts / UNIT).tolist(), strict=True))

    def _predicted(self, sums: Sums, totals: Mapping[str, Ints]) -> dict[str, dict[str, int]]:
        rows = {name: row[PREDICTED:] for name, row in totals.items()}
        if sums.ensemble is not None:
            rows = {ENSEMBLE: sums.ensemble.predicted, **rows}
        return {
            name: dict(zip(self._labels, row.tolist(), strict=True)) for name, row in rows.items()
        }

    def _regrets(self, sums: Sums) -> list[Regret]:
        """Return the ensemble's regrets, against the strongest comparator first."""
        if not sums.regret:
            return []
        table = np.stack(list(sums.regret.values()))
        experts = (table.shape[1] - 2) // 2
        wrong, expected = table[:, 2 : 2 + experts], table[:, 2 + experts :]
        bound = ensemble_bound(self._fusion, int(table[:, 0].sum()), len(table))
        whole = awake_regret(expected.sum(axis=0), wrong.sum(axis=0))
        regrets = [Regret(BEST, float(whole), bound)]
        if self._settings.ensemble.context is not None:
            by_cube = awake_regret(expected, wrong).sum()
            regrets.insert(0, Regret(BEST_PER_CONTEXT, float(by_cube), bound))
        return regrets

    def _oracles(self, totals: Mapping[str, Ints]) -> list[Regret]:
        return [
            Regret(
                ORACLE,
                float(row[LOST] / UNIT),
                bound_so_far(self._learners[name], int(row[LABELLED])),
                name,
            )
            for name, row in totals.items()
            if row[LABELLED]
        ]

    @cached_property
    def _targets(self) -> dict[str, float]:
        wanted = {
            "per": self._settings.ensemble.per_target,
            "fnr": self._settings.ensemble.fnr_target,
        }
        return {rate: target for rate, target in wanted.items() if target is not None}

    def _threshold(self, rows: Mapping[int, Ints]) -> float | None:
        """Return FNR control's threshold; None if it is off, or if each context has its own."""
        if self._control is None or self._settings.ensemble.context is not None:
            return None
        cells = np.zeros(1, np.int64)
        if rows:
            self._control.table.put(cells, rows[0][None])
        # The answer is the positive label where the log-odds are at least -ln h.
        return 1.0 / (1.0 + exp(float(self._control.log_h(cells)[0])))


def score(settings: Settings, sums: Sums) -> Scores:
    """Compute the scores once."""
    return Scorer(settings).board(sums)


def _error_bounds(sums: Sums, regrets: list[Regret]) -> dict[str, float]:
    """Return, by comparator, the sum of its errors and the bound on regret, as a rate.

    Where an expert was silent, the ensemble's own expected errors replace its errors.
    """
    rows = list(sums.regret.values())
    labelled, expected = sum(int(r[0]) for r in rows), sum(int(r[1]) for r in rows) / UNIT
    return {
        regret.comparator: (expected - regret.value + regret.bound) / labelled
        for regret in regrets
        if regret.bound is not None and labelled
    }


def _column(totals: Mapping[str, Ints], column: int) -> dict[str, int]:
    return {name: int(row[column]) for name, row in totals.items()}


def _known(number: Any) -> float | None:
    return None if np.isnan(number) else float(number)
