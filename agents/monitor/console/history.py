"""The curves so far: bounded, and always from the start.

A point holds the scores at one time. When there are too many, every second one is dropped: a day of
curves takes as much room as a minute, at a lower resolution.

    >>> history = History(most=4)
    >>> for n in range(7):
    ...     history.add({"n": n})
    >>> [point["n"] for point in history.points]
    [0, 2, 4, 6]
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from agents.monitor.scores import ENSEMBLE, Scores
from settings.model import Settings

Point: TypeAlias = Mapping[str, Any]
MOST = 600
_DIGITS = 6


class History:
    """Points in order of arrival; `most` is even, so that halving keeps the newest."""

    def __init__(self, most: int = MOST) -> None:
        self.points: list[Point] = []
        self._most = most
        self._added = 0
        self._step = 1

    def add(self, point: Point) -> None:
        """Add a point, unless nothing has changed since the last one."""
        if self.points and _same(self.points[-1], point):
            return
        # The newest point is always shown; it stays if its number is a multiple of the step.
        if self.points and (self._added - 1) % self._step:
            self.points.pop()
        self.points.append(point)
        self._added += 1
        if len(self.points) > self._most:
            self.points = self.points[::2]
            self._step *= 2


def _same(a: Point, b: Point) -> bool:
    return all(b[key] == value for key, value in a.items() if key != "t")


def point(settings: Settings, board: Scores, at: int) -> Point:
    """Return the scores as a point of the curves.

    t, n    when (milliseconds since 1970), and after how many labels
    e, r    error rate of the ensemble and of each learner: over all labels, over the last 1000
    x       each learner's exploration
    w       weights by expert
    g, b    regret and its bound
    """
    names = [ENSEMBLE, *settings.learners]
    return {
        "t": at,
        "n": board.labelled,
        "e": [_rounded(board.rates.get(name, {}).get("per")) for name in names],
        "r": [_rounded(board.recent.get(name, {}).get("per")) for name in names],
        "x": [_rounded(board.exploration.get(name)) for name in settings.learners],
        "w": {expert: _rounded(weight) for expert, weight in board.weights.items()},
        "g": _rounded(board.regret),
        "b": _rounded(board.bound),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
