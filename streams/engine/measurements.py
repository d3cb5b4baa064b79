"""What a processor wants measured, kept until its batch is committed.

A processor runs ahead of the commit, and its work may be discarded and redone. So it only takes
notes; observers get them together with the commit, or never.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FEW = 8
Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(slots=True)
class Notes:
    """Counts, observations and examples by name, of one transaction."""

    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[Numbers]] = field(default_factory=dict)
    last: dict[str, list[bytes]] = field(default_factory=dict)
    """The last few records of a kind, as they were sent."""

    def count(self, name: str, amount: int) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def observe(self, name: str, values: Numbers) -> None:
        """Record some observations."""
        self.values.setdefault(name, []).append(values)

    def keep(self, name: str, records: Sequence[bytes]) -> None:
        """Keep the last few records of a kind."""
        self.last[name] = [*self.last.get(name, ()), *records[-FEW:]][-FEW:]
