"""What goes into IUP and what comes out: configuration, choices, counts of other partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from learners.arrays.types import Bools, Floats, Ints
from learners.errors import LearnerError
from learners.local.phases import Clock, Horizon


class Feedback(StrEnum):
    """Whose counts a label changes: the chosen rule's, or those of every rule."""

    BANDIT = "bandit"
    FULL = "full"


@dataclass(frozen=True)
class IupConfig:
    """What IUP is told beforehand.

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
        known = self.trials > 0
        return np.where(known, self.successes / np.maximum(self.trials, 1), np.nan)


class Elsewhere(Protocol):
    """What other partitions of the same learner counted; decisions go by the sum."""

    @property
    def labelled(self) -> int:
        """Return how many labels they took in."""

    def rows(self, phase: int, cubes: Ints) -> Ints:
        """Return their counts of some cubes of a phase, summed."""

    def items(self, phase: int) -> tuple[Ints, Ints]:
        """Return all cubes of a phase that they visited, and their counts, summed."""
