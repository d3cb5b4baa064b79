"""An adaptive partition: cells that split where labels come.

IUP cuts every feature alike before the first instance: with ten features even two parts each make
1024 cubes, most of which stay empty. Here there is one cell at first, the whole unit cube. A cell
that has counted `enough` labels since it was made is cut at the middle of one of its sides, so
cells are small where many instances come, as in zooming bandits (A. Slivkins, "Contextual bandits
with similarity information", JMLR 15, 2014). The side is the one whose halves tell the labels apart
best, by the counts S of labels in both halves:

    score = sum over halves of  (sum over labels of S^2) / (sum over labels of S)

which is Gini's index turned round (L. Breiman and others, "Classification and regression trees",
1984); equal ones go to the smaller number, and where no side gains the cell waits for `enough` more
labels. That makes it an online decision tree (P. Domingos and G. Hulten, "Mining high-speed data
streams", KDD 2000) whose cuts, like the paper's, do not depend on the data.

A cell's chances lean on those of the cells around it, from the outermost inwards:

    p <- (S + backoff p) / (N + backoff),   p = 1/K before the first

All that is kept are integers, and scores are compared as fractions: a fold over the labels in order
that comes out the same everywhere. Cells of several partitions differ, so they cannot be combined.
No regret bound: Theorem 1 is about cubes that are there from the start.
"""

from fractions import Fraction

import numpy as np

from learners.arrays.types import Bools, Floats, Ints, State
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.odds import from_scores
from learners.rules.states import array

INSIDE = -1
"""The side of a cell that has not been cut."""

_LEAST = 1e-12


class AdaptiveCells(LearningRule):
    """Cells that split.

    enough    labels that a cell must have seen before it splits
    backoff   labels that a cell borrows from the one around it
    most      how many cells there may be, those that were cut included
    """

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        enough: int = 4,
        backoff: float = 2.0,
        most: int = 1000,
    ) -> None:
        super().__init__(name, space, classes)
        self.columns = Columns(space)
        self.enough = enough
        self.backoff = backoff
        self.most = most
        width = self.columns.width
        self._low: list[Floats] = [np.zeros(width)]
        self._middle: list[Floats] = [np.full(width, 0.5)]
        self._high: list[Floats] = [np.ones(width)]
        self.sides = [INSIDE]
        self.halves: list[int] = [0]
        # Plain numbers: for a handful of labels they are several times as fast as arrays.
        self.counts: list[list[int]] = [[0] * classes]
        self.tried: list[Ints] = [self._nothing()]
        self._every: Ints = np.arange(width)

    def _nothing(self) -> Ints:
        """Counts (side, half, label) of a cell that has seen nothing."""
        return np.zeros((self.columns.width, 2, self.classes), np.int64)

    def path(self, x: Floats) -> list[int]:
        """Return the cells around a point, the whole cube first and the smallest last.

        Middles belong to the upper half. `halves[k]` is the first of the two halves of cell k.
        """
        at, path = 0, [0]
        while (side := self.sides[at]) != INSIDE:
            at = self.halves[at] + int(x[side] >= self._middle[at][side])
            path.append(at)
        return path

    def _log_odds(self, rows: Floats) -> Floats:
        chances = np.empty((len(rows), self.classes))
        for row, x in enumerate(self.columns.unit(rows)):
            chances[row] = self.chances(self.path(x))
        # Where a label never came, many cells inside each other would multiply to nothing.
        return from_scores(np.log(np.maximum(chances, _LEAST)))

    def chances(self, path: list[int]) -> list[float]:
        """Return the chance of each label in the last cell of a path."""
        p, backoff = [1.0 / self.classes] * self.classes, self.backoff
        for at in path:
            counts = self.counts[at]
            total = sum(counts) + backoff
            p = [(n + backoff * q) / total for n, q in zip(counts, p, strict=True)]
        return p

    def _learn(self, rows: Floats, truth: Ints) -> None:
        for x, label in zip(self.columns.unit(rows), truth.tolist(), strict=True):
            self.count(self.path(x), x, label)

    def count(self, path: list[int], x: Floats, label: int) -> None:
        """Count a label in all cells of a path, and split the last if it has seen enough."""
        for at in path:
            self.counts[at][label] += 1
        at = path[-1]
        upper: Bools = x >= self._middle[at]
        tried = self.tried[at]
        tried[self._every, upper.astype(np.int64), label] += 1
        if tried[0].sum() % self.enough == 0 and len(self.sides) + 2 <= self.most:
            side = best_side(tried)
            if side != INSIDE:
                self._cut(at, side, tried[side])
                self.tried[at] = self._nothing()

    def _cut(self, at: int, side: int, counts: Ints) -> None:
        """Cut a cell; its halves start with what was counted in them."""
        self.sides[at], self.halves[at] = side, len(self.sides)
        for half in (0, 1):
            low, high = self._low[at].copy(), self._high[at].copy()
            (low if half else high)[side] = self._middle[at][side]
            self._low.append(low)
            self._high.append(high)
            self._middle.append((low + high) / 2.0)
            self.sides.append(INSIDE)
            self.halves.append(0)
            self.counts.append(counts[half].tolist())
            self.tried.append(self._nothing())

    def state(self) -> State:
        """Return the cuts in the order in which they were made, and all counts."""
        whole = [at for at, side in enumerate(self.sides) if side == INSIDE]
        return {
            "sides": np.array(self.sides, np.int64),
            "halves": np.array(self.halves, np.int64),
            "counts": np.array(self.counts, np.int64),
            "tried": np.array([self.tried[at] for at in whole], np.int64),
        }

    def restore(self, state: State) -> None:
        """Put back what `state` returned."""
        fresh = AdaptiveCells(self.name, self.space, self.classes)
        sides = array(state, "sides", np.int64, (None,))
        halves = array(state, "halves", np.int64, sides.shape)
        counts = array(state, "counts", np.int64, (len(sides), self.classes))
        whole = np.flatnonzero(sides == INSIDE)
        tried = array(state, "tried", np.int64, (len(whole), *fresh.tried[0].shape))
        cut = np.flatnonzero(sides != INSIDE)
        for at in cut[halves[cut].argsort()].tolist():
            if not (0 <= sides[at] < self.columns.width and halves[at] == len(fresh.sides)):
                raise LearnerError("a stored rule does not fit its settings: its cells do not join")
            fresh._cut(at, int(sides[at]), np.zeros((2, self.classes), np.int64))
        self._low, self._middle, self._high = fresh._low, fresh._middle, fresh._high
        self.sides, self.halves = fresh.sides, fresh.halves
        self.counts, self.tried = counts.tolist(), fresh.tried
        for at, tally in zip(whole.tolist(), tried, strict=True):
            self.tried[at] = tally

    @property
    def averages(self) -> bool:
        """False: partitions cut their cells in different places."""
        return False


def best_side(tried: Ints) -> int:
    """Return the side whose halves tell the labels apart best, INSIDE if none does at all.

    >>> best_side(np.array([[[3, 1], [3, 1]], [[0, 2], [6, 0]]]))
    1
    >>> best_side(np.array([[[2, 2], [2, 2]], [[0, 0], [4, 4]]]))
    -1
    """
    best, side = _purity(tried[0].sum(axis=0)), INSIDE
    for j, (lower, upper) in enumerate(tried):
        score = _purity(lower) + _purity(upper)
        if score > best:
            best, side = score, j
    return side


def _purity(counts: Ints) -> Fraction:
    total = int(counts.sum())
    return Fraction(int(counts @ counts), total) if total else Fraction(0)
