"""Scores so far: error rates, accuracies, weights, regret with its bounds. Pure arithmetic.

Everything is computed from integers of the exactly-once state, so it survives restarts; the weights
are those of the latest diagnosis.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
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
    AmendmentTotals,
    EnsembleTotals,
    local_width,
)
from learners.arrays.shares import UNIT
from learners.arrays.types import Ints
from learners.assessment.assessment import WIDTH, counts_of
from learners.fusion.late_labels import LATE
from learners.fusion.late_labels import WIDTH as DELAYS_WIDTH
from learners.scores.error_rates import rates
from learners.theory.promises import (
    error_bound,
    regret_bound,
    share_interval,
)
from learners.theory.regret import awake_regret
from settings.building import fusion
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
    """A share of right predictions, with an interval of the mean chance of being right so far."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """All scores. Rates are None where nothing was labelled yet.

    labels        the names of the labels, in the settings' order
    labelled      labels that were learned from, without those of history
    taught        labels of past patients (`hb teach`) that were learned from
    rates, recent by name, the ensemble first: PER, FPR and FNR, over all and over the last 1,000
    history       the same over past patients, who are in none of the other rates; empty if
                  there were none
    confusion     by name: counts of truth by prediction, in the order of `labels`
    window        the same counts of the last 1,000, of the ensemble
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
    corrections   how often a label that had been learned was amended or withdrawn
    risen         by how much the ensemble's error rate has risen within the last 1,000; 0 if not
    targets       the rates that the settings ask for: `per`, `fnr`
    answers       diagnoses by whether they were `given` an answer or `referred`
    missed        by label: the share of its patients for whom it had been excluded
    miss_targets  by label: the share that the settings ask for
    """

    labels: list[str] = field(default_factory=list)
    labelled: int = 0
    taught: int = 0
    rates: dict[str, dict[str, float | None]] = field(default_factory=dict)
    recent: dict[str, dict[str, float | None]] = field(default_factory=dict)
    history: dict[str, dict[str, float | None]] = field(default_factory=dict)
    confusion: dict[str, Ints] = field(default_factory=dict)
    window: Ints | None = None
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
    corrections: int = 0
    risen: float = 0.0
    targets: dict[str, float] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)
    miss_targets: dict[str, float] = field(default_factory=dict)

    @property
    def learners(self) -> list[str]:
        """Return the local learners."""
        return [name for name in self.rates if name != ENSEMBLE]

    @property
    def best(self) -> str | None:
        """Return the learner with the lowest error rate, if any was labelled."""
        rated = [name for name in self.learners if self.rates[name]["per"] is not None]
        return min(rated, key=lambda name: self.rates[name]["per"] or 0.0, default=None)


@dataclass(frozen=True)
class Sums:
    """Rows of the state's tables, each the sum over all partitions.

    confusion truths by labels, for each scope: the ensemble, then each learner
    regret    by context cube, as `EnsembleLearner.regret`
    delays    by context cube, what Hedge's labels came too late for, if Hedge's weights decide
    totals    the totals of each learner
    ensemble  the totals of the ensemble
    amended   what it counted of corrected labels
    recent    (scopes, K, K) confusion counts of the last labelled instances
    weights   each expert's share of the latest diagnosis, in parts
    assessed  what was counted of each label, as `learners.assessment`
    risen     by how much the ensemble's error rate has risen in `recent` (`learners.scores.change`)
    """

    confusion: Mapping[int, Ints] = field(default_factory=dict)
    regret: Mapping[int, Ints] = field(default_factory=dict)
    totals: Mapping[str, Ints] = field(default_factory=dict)
    ensemble: EnsembleTotals | None = None
    amended: AmendmentTotals | None = None
    recent: Ints | None = None
    weights: Ints | None = None
    assessed: Mapping[int, Ints] = field(default_factory=dict)
    risen: float = 0.0
    delays: Mapping[int, Ints] = field(default_factory=dict)


class Scorer:
    """Computes the scores of one ensemble; what depends on the settings alone is computed once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._labels = list(settings.labels)
        self._names = [ENSEMBLE, *settings.learners]
        self._positive = self._labels.index(settings.positive)
        self._fusion = fusion(settings)
        self._experts = self._fusion.experts(list(settings.learners))

    def score(self, sums: Sums) -> Scores:
        """Return the scores of a state."""
        K = len(self._labels)
        empty = np.zeros(K * K, np.int64)
        rows = [sums.confusion.get(i, empty) for i in range(2 * len(self._names))]
        counts, past = np.array(rows).reshape(2, -1, K, K)
        totals = {name: sums.totals.get(name, self._nothing) for name in self._settings.learners}
        regrets = self._regrets(sums)
        main = next(iter(regrets), None)
        return Scores(
            labels=self._labels,
            labelled=int(counts[0].sum()),
            taught=int(past[0].sum()),
            rates=self._rates(counts),
            history=self._rates(past) if past.any() else {},
            recent={} if sums.recent is None else self._rates(sums.recent),
            risen=sums.risen,
            confusion=dict(zip(self._names, counts, strict=True)),
            window=None if sums.recent is None else sums.recent[0],
            accuracy=self._accuracy(counts, _corrections(sums)),
            corrections=_corrections(sums),
            regret=None if main is None else main.value,
            bound=None if main is None else main.bound,
            regrets=[*regrets, *_oracles(totals)],
            error_bounds=self._error_bounds(sums, regrets),
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
            miss_targets=self._settings.ensemble.targets(self._labels),
            **self._assessed(sums.assessed),
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

    def _accuracy(self, counts: Ints, corrections: int) -> dict[str, Accuracy]:
        trials, hits = counts.sum(axis=(1, 2)), np.trace(counts, axis1=1, axis2=2)
        low, high = share_interval(trials, hits, corrections=corrections)
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
        partitions = self._settings.topics.partitions
        bound = regret_bound(
            self._fusion,
            table[:, 0],
            _delays(sums),
            partitions=partitions,
            corrected=_corrections(sums) > 0,
        )
        whole = awake_regret(expected.sum(axis=0), wrong.sum(axis=0))
        regrets = [Regret(BEST, float(whole), bound)]
        if self._settings.ensemble.context is not None:
            by_cube = awake_regret(expected, wrong).sum()
            regrets.insert(0, Regret(BEST_PER_CONTEXT, float(by_cube), bound))
        return regrets

    def _error_bounds(self, sums: Sums, regrets: list[Regret]) -> dict[str, float]:
        """Return, by comparator, the rate of errors that its own and the bound on regret allow.

        Where an expert was silent, the ensemble's own expected errors replace its errors.
        """
        rows = list(sums.regret.values())
        labelled, expected = sum(int(r[0]) for r in rows), sum(int(r[1]) for r in rows) / UNIT
        overruled = bool(self._settings.ensemble.targets(self._labels))
        guesses = self._guesses(sums, labelled)
        bounds = {
            regret.comparator: error_bound(
                self._fusion,
                expected - regret.value,
                regret.bound,
                overruled=overruled,
                guesses=guesses,
            )
            for regret in regrets
        }
        return {name: bound / labelled for name, bound in bounds.items() if bound is not None}

    def _guesses(self, sums: Sums, labelled: int) -> int:
        """Return the most labelled instances on which no learner had spoken when it was decided."""
        scopes = len(self._names)
        heard = [
            sum(int(sums.confusion[i].sum()) for i in (k, k + scopes) if i in sums.confusion)
            for k in range(1, scopes)
        ]
        late = int(_delays(sums)[:, LATE].sum())
        return min(labelled, labelled - max(heard) + late)

    @cached_property
    def _targets(self) -> dict[str, float]:
        targets = {
            "per": self._settings.ensemble.per_target,
            "fnr": self._settings.ensemble.fnr_target,
        }
        return {rate: target for rate, target in targets.items() if target is not None}

    def _assessed(self, rows: Mapping[int, Ints]) -> dict[str, Any]:
        """Return how many diagnoses were answers, and the miss rate of labels with a target."""
        empty = np.zeros(WIDTH, np.int64)
        counts = counts_of(np.stack([rows.get(k, empty) for k in range(len(self._labels))]))
        targets = self._settings.ensemble.targets(self._labels)
        return {
            "answers": {
                "given": int(counts.answered.sum()),
                "referred": int(counts.referred.sum()),
            },
            "missed": {
                label: float(counts.missed[k] / counts.cases[k])
                for k, label in enumerate(self._labels)
                if label in targets and counts.cases[k]
            },
        }


def score(settings: Settings, sums: Sums) -> Scores:
    """Compute the scores once."""
    return Scorer(settings).score(sums)


def _oracles(totals: Mapping[str, Ints]) -> list[Regret]:
    """Return what learners lost to their oracles. Nothing tells whether Theorem 1 covers it.

    It needs each label learned before the learner's next decision. A label that was on time for the
    ensemble may reach a learner after it has decided on the next patient.
    """
    return [
        Regret(ORACLE, float(row[LOST] / UNIT), None, name)
        for name, row in totals.items()
        if row[LABELLED]
    ]


def _corrections(sums: Sums) -> int:
    """Return how often a label that had been learned was amended or withdrawn."""
    return 0 if sums.amended is None else sums.amended.corrections


def _delays(sums: Sums) -> Ints:
    """Return the delays of the cubes that have a regret, in the same order."""
    nothing = np.zeros(DELAYS_WIDTH, np.int64)
    rows = [sums.delays.get(cube, nothing) for cube in sums.regret]
    return np.array(rows, np.int64).reshape(len(rows), DELAYS_WIDTH)


def _column(totals: Mapping[str, Ints], column: int) -> dict[str, int]:
    return {name: int(row[column]) for name, row in totals.items()}


def _known(number: Any) -> float | None:
    return None if np.isnan(number) else float(number)
