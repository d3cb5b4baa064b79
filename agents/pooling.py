"""What the other partitions of a local learner have learned, for use in its decisions.

Counts add up. Rules that learn are folds over one partition's feedback; a decision uses the
combination of all partitions' states (`LearningRule.average`), weighted by what each learned from.
"""

from typing import Any, NamedTuple

import numpy as np

from agents.state_encoding import unpack_state
from learners.arrays.types import Ints
from learners.local.learner import LocalLearner
from learners.rules.base import LearningRule, Rule
from settings.building import local_learner
from settings.model import Settings
from streams.engine.changelogs.replica import Others
from streams.engine.state.entries import EntriesTable

LEARNED = "learned"
"""The array of a stored model that holds the number of rows it learned from."""


class PhaseCubes(NamedTuple):
    """The ids of one phase: their positions in the input, and their cubes."""

    phase: int
    positions: Ints
    cubes: Ints


class PhaseIds:
    """One table for the cubes of all phases: each phase's ids begin where the last one's end."""

    def __init__(self, learner: LocalLearner) -> None:
        self._iup = learner.iup
        self._starts = [0]

    def _start(self, phase: int) -> int:
        while len(self._starts) < phase:
            size = self._iup.phase(len(self._starts)).partition.size
            self._starts.append(self._starts[-1] + size)
        return self._starts[phase - 1]

    def join(self, phase: int, cubes: Any) -> Any:
        """Return the table's ids of a phase's cubes."""
        return cubes + self._start(phase)

    def split(self, ids: Any) -> list[PhaseCubes]:
        """Return the ids phase by phase."""
        parts = []
        phase = 1
        while len(ids) and self._start(phase) <= ids.max():
            low, high = self._start(phase), self._start(phase + 1)
            positions = np.flatnonzero((ids >= low) & (ids < high))
            if positions.size:
                parts.append(PhaseCubes(phase, positions, ids[positions] - low))
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

    def __init__(self, settings: Settings, name: str, others: Others, models: EntriesTable) -> None:
        self._others, self._models = others, models
        self._learner = local_learner(settings, name)
        self._seen: tuple[int, bytes | None] | None = None

    def rules(self, own: LocalLearner) -> tuple[Rule, ...]:
        """Return the rules to decide with; they are pooled again after anything new was learned."""
        learning = [rule for rule in own.rules if isinstance(rule, LearningRule)]
        mine = self._models.get(learning[0].name.encode())
        if self._seen != (self._others.version, mine):
            self._seen = self._others.version, mine
            for mixed in self._learner.rules:
                if isinstance(mixed, LearningRule) and mixed.averages:
                    self._mix(mixed)
        return tuple(
            pooled if isinstance(pooled, LearningRule) and pooled.averages else rule
            for rule, pooled in zip(own.rules, self._learner.rules, strict=True)
        )

    def _mix(self, rule: LearningRule) -> None:
        key = rule.name.encode()
        held = [self._models.get(key)]
        held += [entries.get(key) for entries in self._others.entries("models").values()]
        states = [unpack_state(data) for data in held if data is not None]
        if states:
            counts = [int(state.pop(LEARNED)) for state in states]
            rule.restore(rule.average(states, counts))
