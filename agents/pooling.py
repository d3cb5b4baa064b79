"""What the other partitions of a local learner have learned, for use in its decisions.

Counts add up. Rules that learn are folds over one partition's feedback; a decision uses the
combination of all partitions' states (`LearningRule.average`), weighted by what each learned from.
"""

from typing import NamedTuple

import numpy as np

from agents.models import EARLIER, MODELS, Models
from learners.arrays.types import Ints, State
from learners.errors import LearnerError
from learners.local.fill_and_scale import Moments
from learners.local.learner import LocalLearner, Pooled
from learners.local.partition import MAX_CELLS
from learners.rules.base import LearningRule
from settings.building import local_learner
from settings.model import Settings
from streams.engine.changelogs.replica import Others

FILLING = b"(missing values)"
"""The entry beside the models that holds what replaces missing values; no rule has that name."""
_MOST_LABELS = 1 << 40
"""More than a learner can have learned. Stored ids may be anything, and each phase takes memory."""
LEARNED = "learned"
"""The array of a stored model that holds the number of rows it learned from."""
BEGAN = "began"
"""The array of a stored model that holds the form of model that it began as."""
FORM, EARLIER_FORM = 2, 1
"""Models of the earlier form, which did not say so, kept some values as they were."""


class PhaseCubes(NamedTuple):
    """The ids of one phase: their positions in the input, and their cubes."""

    phase: int
    positions: Ints
    cubes: Ints


class PhaseIds:
    """One table for the cubes of all phases: each phase's ids begin where the last one's end.

    Those of instances with missing values are numbered downwards from the largest id, as in each
    phase (`learners.local.partition`).
    """

    def __init__(self, learner: LocalLearner) -> None:
        self._iup = learner.iup
        self._last = learner.iup.config.clock.phase(_MOST_LABELS)
        self._starts = [0]
        self._ends = [0]

    def _start(self, phase: int) -> int:
        while len(self._starts) < phase:
            grid = self._iup.phase(len(self._starts)).partition.grid
            self._starts.append(self._starts[-1] + grid.size)
            self._ends.append(self._ends[-1] + grid.incomplete)
        return self._starts[phase - 1]

    def join(self, phase: int, cubes: Ints) -> Ints:
        """Return the table's ids of a phase's cubes."""
        start, size = self._start(phase), self._iup.phase(phase).partition.size
        return np.where(cubes < size, cubes + start, cubes - self._ends[phase - 1])

    def split(self, ids: Ints) -> list[PhaseCubes]:
        """Return the ids phase by phase; LearnerError if there is no phase with such an id."""
        # Ids counted from the top are recognised by being nearer to it; no table gets half-way.
        down = MAX_CELLS - ids
        complete = ids < down
        parts = []
        phase, left = 1, len(ids)
        while left:
            if phase > self._last:
                raise LearnerError("it counts in cubes that this learner does not have")
            low, high = self._start(phase), self._start(phase + 1)
            first, last = self._ends[phase - 1], self._ends[phase]
            of = np.where(complete, (ids >= low) & (ids < high), (down >= first) & (down < last))
            positions = np.flatnonzero(of)
            if positions.size:
                cubes = np.where(complete, ids - low, ids + first)[positions]
                parts.append(PhaseCubes(phase, positions, cubes))
                left -= positions.size
            phase += 1
        return parts


class OtherCounts:
    """What the other partitions counted, for `Iup.elsewhere`."""

    def __init__(self, others: Others, ids: PhaseIds, labelled: int) -> None:
        self._others, self._ids, self._column = others, ids, labelled

    @property
    def labelled(self) -> int:
        """Return how many labels they have learned from."""
        return int(self._others.rows("totals", np.zeros(1, np.int64))[0, self._column])

    def rows(self, phase: int, cubes: Ints) -> Ints:
        """Return their counts of some cubes, summed."""
        return self._others.rows("counts", self._ids.join(phase, cubes))

    def items(self, phase: int) -> tuple[Ints, Ints]:
        """Return all cubes of a phase that they have visited, and their summed counts."""
        ids, rows = self._others.items("counts")
        for part in self._ids.split(ids):
            if part.phase == phase:
                return part.cubes, rows[part.positions]
        return np.zeros(0, np.int64), rows[:0]


class RulePool:
    """The learning rules, combined over all partitions."""

    def __init__(self, settings: Settings, name: str, others: Others, models: Models) -> None:
        self._others, self._models = others, models
        self._learner = local_learner(settings, name)
        self._seen: tuple[int, bytes | None] | None = None

    def pooled(self, own: LocalLearner) -> Pooled:
        """Return what to decide with; it is pooled again after anything new was learned."""
        learning = [rule for rule in own.rules if isinstance(rule, LearningRule)]
        own_model = self._models.stored(learning[0].name.encode() if learning else FILLING)
        if self._seen != (self._others.version, own_model):
            self._seen = self._others.version, own_model
            for mixed in self._learner.rules:
                if isinstance(mixed, LearningRule) and mixed.averages:
                    self._mix(mixed)
            self._learner.filling.restore(Moments.merged(self._states(FILLING)))
        rules = [
            pooled if isinstance(pooled, LearningRule) and pooled.averages else rule
            for rule, pooled in zip(own.rules, self._learner.rules, strict=True)
        ]
        return Pooled(rules, self._learner.filling)

    def _states(self, key: bytes) -> list[State]:
        # Other partitions may still run under a version that kept models elsewhere.
        earlier, others = self._others.entries(EARLIER), self._others.entries(MODELS)
        elsewhere = [
            {**earlier.get(n, {}), **others.get(n, {})} for n in sorted({*earlier, *others})
        ]
        return self._models.pooled(key, elsewhere)

    def _mix(self, rule: LearningRule) -> None:
        states = self._states(rule.name.encode())
        if states:
            counts = [int(state.pop(LEARNED)) for state in states]
            for state in states:
                state.pop(BEGAN, None)
            rule.restore(rule.average(states, counts))
