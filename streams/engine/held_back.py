"""Partitions that an open transaction holds back.

A reader of committed records gets nothing beyond the first record of an undecided transaction,
whichever producer wrote it. Lag does not show this: it is measured up to the last committed record.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass

HELD_BACK_AFTER = 5.0
"""Reported only after this many seconds, because open transactions are normal for a while."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A partition, how many of its records cannot be read yet, and for how long."""

    topic: str
    partition: int
    records: int
    seconds: float


class Standstill:
    """Tracks how long the committed records of partitions have ended at the same offset."""

    def __init__(self) -> None:
        self._since: dict[Hashable, tuple[int, float]] = {}

    def seconds(self, place: Hashable, end: int, written: int, now: float) -> float:
        """Return for how long records have been written but undecided; 0 if there are none.

        >>> still, seen = Standstill(), [(4, 0.0), (4, 5.0), (6, 7.0), (9, 9.0)]
        >>> [still.seconds("p", end, written=9, now=now) for end, now in seen]
        [0.0, 5.0, 0.0, 0.0]
        """
        if written <= end:
            self._since.pop(place, None)
            return 0.0
        previous, since = self._since.get(place, (end, now))
        since = since if previous == end else now
        self._since[place] = end, since
        return now - since

    def forget(self, but: Collection[Hashable]) -> None:
        """Forget all other partitions."""
        self._since = {place: noted for place, noted in self._since.items() if place in but}
