"""The time of a local learner: one horizon, or phases of doubling length when it is unknown.

Time is the number of labelled instances: without a label nothing is learned, so nothing moves on.

    >>> [Doubling(100).phase(labelled) for labelled in (0, 99, 100, 299, 300)]
    [1, 1, 2, 2, 3]
    >>> Doubling(100).length(3)
    400
"""

from dataclasses import dataclass
from typing import Protocol

from learners.errors import LearnerError


class Clock(Protocol):
    """Tells which phase comes after so many labelled instances, and how long a phase lasts."""

    def phase(self, labelled: int) -> int:
        """Return the phase, from 1, of the next instance."""

    def length(self, phase: int) -> int:
        """Return the horizon T that the phase's learner is built for."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """A known horizon T: a single phase that simply goes on past T."""

    T: int

    def __post_init__(self) -> None:
        if self.T < 1:
            raise LearnerError(f"the horizon must be at least 1, not {self.T}")

    def phase(self, labelled: int) -> int:  # noqa: ARG002 - part of the protocol
        """Return 1: there are no further phases."""
        return 1

    def length(self, phase: int) -> int:  # noqa: ARG002 - part of the protocol
        """Return T."""
        return self.T


@dataclass(frozen=True, slots=True)
class Doubling:
    """The doubling trick: phase j lasts `2^(j-1) * first` labelled instances."""

    first: int

    def __post_init__(self) -> None:
        if self.first < 1:
            raise LearnerError(f"the first phase must last at least 1 instance, not {self.first}")

    def phase(self, labelled: int) -> int:
        """Return the phase of the next instance: phases 1 … j together last `first (2^j - 1)`."""
        return (labelled // self.first + 1).bit_length()

    def length(self, phase: int) -> int:
        """Return `2^(j-1) * first`."""
        return self.first << (phase - 1)
