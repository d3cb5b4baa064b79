"""The curves so far: bounded, and always from the start.

A point holds the scores at one time. When there are too many, every second one is dropped: a day of
curves takes as much room as a minute, at a lower resolution. Marks say what happened on the way:
restarts, workers that came and went, changed settings. The latest few of them are kept.

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
MARKS = 40
_DIGITS = 6


class History:
    """Points in order of arrival; `most` is even, so that halving keeps the newest."""

    def __init__(self, most: int = MOST) -> None:
        self.version = 0
        """Grows with every change."""
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self.points: list[Point] = []
        self.marks: list[Point] = []
        self._added = 0
        self._step = 1

    def add(self, point: Point) -> None:
        """Add a point, unless nothing has changed since the last one."""
        if self.points and _same(self.points[-1], point):
            return
        if self.points and 2 * point["n"] < self.points[-1]["n"]:
            self._begin()  # labels are withdrawn one by one, so this is another system
        self.version += 1
        # The newest point is always shown; it stays if its number is a multiple of the step.
        if self.points and (self._added - 1) % self._step:
            self.points.pop()
        self.points.append(point)
        self._added += 1
        if len(self.points) > self._most:
            self.points = self.points[::2]
            self._step *= 2

    def mark(self, at: int, kind: str, text: str) -> None:
        """Note what happened at a time, after as many labels as the newest point has."""
        labels = self.points[-1]["n"] if self.points else 0
        self.marks = [*self.marks, {"t": at, "n": labels, "kind": kind, "text": text}][-MARKS:]
        self.version += 1

    def state(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "points": self.points,
            "marks": self.marks,
            "added": self._added,
            "step": self._step,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where another history ended."""
        self.points, self.marks = list(state["points"]), list(state["marks"])
        self._added, self._step = int(state["added"]), int(state["step"])


def _same(a: Point, b: Point) -> bool:
    return all(b[key] == value for key, value in a.items() if key != "t")


def point(settings: Settings, scores: Scores, at: int) -> Point:
    """Return the scores as a point of the curves.

    t, n    when (milliseconds since 1970), and after how many labels
    h       how many of these labels were history, which the error rates leave out
    e, r    error rate of the ensemble and of each learner: over all labels, over the last 1,000
    x       each learner's exploration
    w       weights by expert
    g, b    regret and its bound
    """
    names = [ENSEMBLE, *settings.learners]
    # A diagnosis on which no learner had an opinion followed no weights.
    weights = scores.weights if any(scores.weights.values()) else {}
    return {
        "t": at,
        "n": scores.labelled + scores.taught,
        "h": scores.taught,
        "e": [_rounded(scores.rates.get(name, {}).get("per")) for name in names],
        "r": [_rounded(scores.recent.get(name, {}).get("per")) for name in names],
        "x": [_rounded(scores.exploration.get(name)) for name in settings.learners],
        "w": {expert: _rounded(weight) for expert, weight in weights.items()},
        "g": _rounded(scores.regret),
        "b": _rounded(scores.bound),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
