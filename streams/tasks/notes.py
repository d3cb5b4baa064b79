"""What a processor wants to have measured, kept until its batch is committed.

A processor runs ahead of the commit, and what it did may be thrown away and done again. So it only
notes what it did; whoever measures hears of it together with the commit, or never.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(slots=True)
class Notes:
    """Counts and observations by name, of one transaction."""

    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[Numbers]] = field(default_factory=dict)

    def count(self, name: str, amount: int) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def observe(self, name: str, values: Numbers) -> None:
        """Note some observations."""
        self.values.setdefault(name, []).append(values)
