"""IUP, Instance-based Uniform Partitioning: how a local learner picks a rule (section IV).

    paper           here
    p_i(t)          cubes, from `Partition.cells`
    N_{f,p}         trials, S_{f,p} = N * mean: successes; integers
    g_{f,p}         index = S/N + c sqrt((2/N)(1 + 2 ln(2 |F| m^d T^1.5))), +inf where N = 0
    a_i(t)          rules: argmax of w_f * g_f
    explores        a_i(t) is not in argmax of S/N (with S/N = 0 where N = 0)

`c` is 1 in the paper and a setting here; `w` is the paper's h_IUP. Deciding reads the counts and
learning adds to them: a decision may run far ahead of its label, and an instance whose label never
comes leaves no trace. Counts are integers, so learners of several partitions merge exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from learners.arrays.tables import DENSE_LIMIT, CellTable, table_for
from learners.arrays.ties import argmax, largest
from learners.arrays.types import Bools, Floats, Ints, Seeds
from learners.errors import LearnerError
from learners.local.backoff import Backoff
from learners.local.features import FeatureSpace
from learners.local.partition import Partition, cuts_for
from learners.local.phases import Clock, Horizon
from learners.theory.bounds import log_term


class Feedback(StrEnum):
    """Whose counts a label changes: the chosen rule's, or those of every rule."""

    BANDIT = "bandit"
    FULL = "full"


@dataclass(frozen=True)
class IupConfig:
    """How IUP is set up.

    rules        |F_i|, how many rules there are to choose from
    clock        a known horizon T, or doubling phases
    alpha        exponent of the Hölder condition; sets the number of cuts
    exploration  c, the scale of the index's second term; 1 is the paper's theory
    feedback     bandit or full
    weights      w_f per rule; the paper's h_IUP is the positive rule's weight
    preferred    the rule that wins ties it is part of; None: a hash of the instance id decides
    cuts         m itself, instead of the paper's formula
    max_cuts     M_i, the memory bound on m
    backoff      pseudo-trials that a cube borrows from coarser cells; 0 is the paper
    """

    rules: int
    clock: Clock = field(default_factory=lambda: Horizon(10_000))
    alpha: float = 1.0
    exploration: float = 1.0
    feedback: Feedback = Feedback.BANDIT
    weights: Sequence[float] | None = None
    preferred: int | None = None
    cuts: int | None = None
    max_cuts: int | None = None
    backoff: float = 0.0

    def __post_init__(self) -> None:
        weights = self.weights or (1.0,) * self.rules
        checks = {
            "there must be at least one rule": self.rules >= 1,
            "alpha must be above 0": self.alpha > 0,
            "exploration must be 0 or greater": self.exploration >= 0,
            "there must be one weight above 0 per rule": len(weights) == self.rules
            and all(0 < w < np.inf for w in weights),
            "the preferred rule does not exist": self.preferred is None
            or 0 <= self.preferred < self.rules,
            "cuts and max_cuts must be at least 1": all(
                limit is None or limit >= 1 for limit in (self.cuts, self.max_cuts)
            ),
            "backoff must be 0 or greater": 0 <= self.backoff < np.inf,
        }
        for message, holds in checks.items():
            if not holds:
                raise LearnerError(f"IUP: {message}")


@dataclass(frozen=True, slots=True)
class Choices:
    """What IUP chose for a batch: one entry per instance.

    phase       the phase they were made in (the same for the whole batch)
    cubes       the cell of each instance in that phase's partition
    rules       index of the chosen rule
    exploring   whether the choice explores
    trials      N of the chosen rule in the cube
    successes   S of the chosen rule in the cube
    smoothed    with back-off, the chosen rule's smoothed mean
    """

    phase: int
    cubes: Ints
    rules: Ints
    exploring: Bools
    trials: Ints
    successes: Ints
    smoothed: Floats | None = None

    @property
    def accuracy(self) -> Floats:
        """Return the estimated accuracy of the chosen rule: S/N, nan where N = 0, or smoothed."""
        if self.smoothed is not None:
            return self.smoothed
        tried = self.trials > 0
        return np.where(tried, self.successes / np.maximum(self.trials, 1), np.nan)


class Elsewhere(Protocol):
    """What other partitions of the same learner counted; decisions go by the sum."""

    @property
    def labelled(self) -> int:
        """Return how many labels they took in."""

    def rows(self, phase: int, cubes: Ints) -> Ints:
        """Return their counts of some cubes of a phase, summed."""

    def items(self, phase: int) -> tuple[Ints, Ints]:
        """Return all cubes of a phase that they visited, and their counts, summed."""


class _Phase:
    """Partition, counts and constants of one phase."""

    def __init__(self, space: FeatureSpace, config: IupConfig, number: int, copies: int) -> None:
        T = config.clock.length(number)
        real = int((space.category_counts == 0).sum())
        m = config.cuts or cuts_for(T, config.alpha, real, config.max_cuts)
        self.horizon = T
        self.partition = Partition(space, m)
        self.size = self.partition.size * copies
        full = config.feedback is Feedback.FULL
        # Under full feedback the hits of the rules that were really chosen need a column of their
        # own; under bandit feedback they are the sum of S.
        self.table = table_for(self.size, 2 * config.rules + full)
        # Complete instances and the others are two streams, each with a partition of its own.
        self.factor = 2.0 * log_term(T, config.rules, self.partition.size)
        self.open_factor = 2.0 * log_term(T, config.rules, self.partition.grid.incomplete)
        self.cells = np.arange(min(self.size, DENSE_LIMIT))
        self.backoff = Backoff(self.partition, config.rules, config.backoff)

    def factors(self, cubes: Ints) -> "float | Floats":
        """Return the factor of the index's second term: `2 (1 + 2 ln(2 |F| m^d T^1.5))`."""
        if not len(cubes) or cubes.max() < self.size:
            return self.factor
        return np.where(cubes < self.size, self.factor, self.open_factor)


class Iup:
    """The bandit of one local learner, or of many that are alike and share nothing but a batch.

    With `copies` learners the cubes of copy k are numbered from k times the partition's size on;
    the index of each knows its own cubes only. They share one clock, so only a `Horizon` will do.

    >>> from learners.local.features import unit_cube
    >>> from learners.arrays.seeds import seeds_of
    >>> iup = Iup(unit_cube(1), IupConfig(rules=2, cuts=2, exploration=0.0, preferred=0))
    >>> x, seeds = np.array([[0.1], [0.9]]), seeds_of(["a", "b"])
    >>> first = iup.decide(x, seeds)
    >>> first.cubes.tolist(), first.rules.tolist()
    ([0, 1], [0, 0])
    >>> iup.learn(first.phase, first.cubes, first.rules, np.array([[True, False], [False, True]]))
    >>> iup.decide(x, seeds).rules.tolist()
    [1, 1]
    """

    def __init__(self, space: FeatureSpace, config: IupConfig, copies: int = 1) -> None:
        if copies > 1 and not (isinstance(config.clock, Horizon) and not config.backoff):
            raise LearnerError("IUP: several copies need a known horizon and no back-off")
        self.space = space
        self.copies = copies
        self.config = config
        self.labelled = 0
        self.elsewhere: Elsewhere | None = None
        self._weights = np.array(config.weights or (1.0,) * config.rules)[:, None]
        self._phases: dict[int, _Phase] = {}
        self.phase(1)

    def phase(self, number: int) -> _Phase:
        """Return the state of a phase, made empty on first use: it starts from nothing."""
        if number not in self._phases:
            self._phases[number] = _Phase(self.space, self.config, number, self.copies)
        return self._phases[number]

    @property
    def current(self) -> int:
        """Return the phase of the next instance."""
        elsewhere = 0 if self.elsewhere is None else self.elsewhere.labelled
        return self.config.clock.phase(self.labelled + elsewhere)

    def tables(self) -> dict[int, CellTable]:
        """Return the counts of each phase; a row is N per rule, S per rule (and hits, if full)."""
        return {number: phase.table for number, phase in self._phases.items()}

    def decide(self, unit: Floats, seeds: Seeds) -> Choices:
        """Choose a rule for each point of the unit cube."""
        return self.choose(self.phase(self.current).partition.cells(unit), seeds)

    def choose(self, cubes: Ints, seeds: Seeds, weights: Floats | None = None) -> Choices:
        """Choose a rule for instances whose cubes are known.

        `weights` (F, n) stand in for the configured ones, where copies differ in them.
        """
        F = self.config.rules
        number = self.current
        phase = self.phase(number)
        # Where there are fewer cubes than instances, each is judged once; `at` says where.
        few = phase.size <= len(cubes) and weights is None and int(cubes.max()) < phase.size
        among, at = (phase.cells, cubes) if few else (cubes, np.arange(len(cubes)))
        rows = phase.table.rows(among)
        if self.elsewhere is not None:
            rows = rows + self.elsewhere.rows(number, among)
        # Rules along the first axis: every step below then runs along contiguous memory.
        counts = rows.T.astype(np.float64, order="C")
        means, index = self._index(number, among, counts[:F], counts[F : 2 * F])
        if weights is not None or self.config.weights is not None:
            index *= self._weights if weights is None else weights
        rules = argmax(index, at, seeds, self.config.preferred)
        chosen = means.take(rules * len(among) + at)
        place = at * rows.shape[1] + rules
        return Choices(
            phase=number,
            cubes=cubes,
            rules=rules,
            exploring=chosen < largest(means).take(at),
            trials=rows.take(place),
            successes=rows.take(place + F),
            smoothed=chosen if self.config.backoff else None,
        )

    def _coarse(self, number: int) -> Backoff | None:
        """Return what other partitions counted, in coarse cells."""
        if self.elsewhere is None:
            return None
        coarse = Backoff(self.phase(number).partition, self.config.rules, self.config.backoff)
        coarse.add(*self.elsewhere.items(number))
        return coarse

    def _index(
        self, number: int, cubes: Ints, trials: Floats, successes: Floats
    ) -> tuple[Floats, Floats]:
        """Return (F, n) means and indices."""
        phase = self.phase(number)
        if self.config.backoff:
            n = trials + self.config.backoff
            means = phase.backoff.means(cubes, trials, successes, self._coarse(number))
        else:
            n = np.maximum(trials, 1.0)
            means = successes / n
        if self.config.exploration:
            index = np.sqrt(phase.factors(cubes) / n)
            if self.config.exploration != 1.0:
                index *= self.config.exploration
            index += means
        else:
            index = means.copy()
        if not self.config.backoff and not trials.all():
            index[trials == 0] = np.inf
        return means, index

    def learn(
        self,
        phase: int | Ints,
        cubes: Ints,
        rules: Ints,
        correct: Bools,
        tried: Bools | None = None,
        *,
        sign: int = 1,
    ) -> None:
        """Take in labels: `correct` (n, F) tells for each rule whether it was right.

        With `sign` -1 they are taken back.

        `tried` (n, F) tells which rules had an opinion, all unless given: the others were not
        tried. Under bandit feedback only the chosen rule's column is read. `phase` may be an array,
        because labels come late and may belong to a phase that is over.
        """
        self.labelled += sign * len(cubes)
        if isinstance(phase, int):
            self._count(self.phase(phase), cubes, rules, correct, tried, sign=sign)
            return
        for number in np.unique(phase).tolist():
            of = np.flatnonzero(phase == number)
            had = None if tried is None else tried[of]
            self._count(self.phase(number), cubes[of], rules[of], correct[of], had, sign=sign)

    def _count(
        self,
        phase: _Phase,
        cubes: Ints,
        rules: Ints,
        correct: Bools,
        tried: Bools | None,
        *,
        sign: int,
    ) -> None:
        F = self.config.rules
        bandit = self.config.feedback is Feedback.BANDIT
        places = phase.table.claim(cubes)
        # Integers, because adding booleans in place would cast them one by one.
        chosen = np.arange(0, correct.size, F) + rules
        hits = correct.take(chosen) * sign
        if bandit:
            phase.table.bump(places, rules, sign if tried is None else tried.take(chosen) * sign)
            phase.table.bump(places, rules + F, hits)
        else:
            for f in range(F):
                phase.table.bump(places, f, sign if tried is None else tried[:, f] * sign)
                phase.table.bump(places, F + f, correct[:, f] * sign)
            phase.table.bump(places, 2 * F, hits)
        phase.backoff.count(cubes, rules, correct, tried, bandit, sign=sign)

    def merge(self, other: "Iup") -> None:
        """Add the counts of another learner of the same configuration: exact."""
        self.labelled += other.labelled
        for number, phase in other._phases.items():
            self.restore(number, *phase.table.items())

    def restore(self, number: int, cubes: Ints, rows: Ints) -> None:
        """Add rows of counts to a phase, as they were read from disk or another partition.

        Time is not part of the rows: set `labelled` as well.
        """
        phase = self.phase(number)
        phase.table.add(cubes, rows)
        phase.backoff.rebuild(phase.table)
