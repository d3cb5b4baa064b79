"""Partitions that an open transaction holds back.

A reader of committed records gets nothing from the first record of an undecided transaction on,
whoever wrote it. Lag does not show this: it ends where committed records end.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass

HELD_BACK_AFTER = 5.0
"""From so many seconds on it is told; transactions that are under way are nothing unusual."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A partition with so many records that nobody may read yet, and for how long none could be."""

    topic: str
    partition: int
    records: int
    seconds: float


class Standstill:
    """Notes since when the committed records of partitions end at the same offset."""

    def __init__(self) -> None:
        self._since: dict[Hashable, tuple[int, float]] = {}

    def seconds(self, place: Hashable, end: int, written: int, now: float) -> float:
        """Return for how long nothing was decided although more is written; 0 if nothing is.

        >>> still, seen = Standstill(), [(4, 0.0), (4, 5.0), (6, 7.0), (9, 9.0)]
        >>> [still.seconds("p", end, written=9, now=now) for end, now in seen]
        [0.0, 5.0, 0.0, 0.0]
        """
        if written <= end:
            self._since.pop(place, None)
            return 0.0
        last, since = self._since.get(place, (end, now))
        since = since if last == end else now
        self._since[place] = end, since
        return now - since

    def forget(self, but: Collection[Hashable]) -> None:
        """Drop what was noted of all other partitions."""
        self._since = {place: noted for place, noted in self._since.items() if place in but}
