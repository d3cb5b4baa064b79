"""Cells that split: against a slow description of the same partition, and its limits."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.errors import LearnerError
from learners.local.features import unit_cube
from learners.rules.cells import INSIDE, AdaptiveCells, best_side
from tests.strategies import generators
from tests.unit.learners.rules.samples import MIXED, stream


class Slow:
    """The same cells, each as a box that holds the labelled points since its birth."""

    def __init__(self, d, enough):
        self.enough = enough
        self.boxes = [(np.zeros(d), np.ones(d))]
        self.points = [[]]
        self.inherited = [[]]

    def find(self, x):
        """Return the box of a point; upper ends belong to the next box, but for 1."""
        held = [
            k
            for k, (low, high) in enumerate(self.boxes)
            if ((low <= x) & ((x < high) | (high == 1.0))).all()
        ]
        assert len(held) == 1, "every point has exactly one cell"
        return held[0]

    def learn(self, x, y):
        k = self.find(x)
        self.points[k].append((x, y))
        if len(self.points[k]) % self.enough == 0:
            self._split(k)

    def _split(self, k):
        low, high = self.boxes[k]
        middle, points = (low + high) / 2, self.points[k]
        scores = [self._score(points, j, middle[j]) for j in range(len(low))]
        if max(scores) <= self._purity([y for _, y in points]):
            return
        j = scores.index(max(scores))
        parts = [[p for p in points if (p[0][j] >= middle[j]) == upper] for upper in (False, True)]
        upper_low, lower_high = low.copy(), high.copy()
        upper_low[j] = lower_high[j] = middle[j]
        self.boxes[k : k + 1] = [(low, lower_high), (upper_low, high)]
        self.points[k : k + 1] = [[], []]
        self.inherited[k : k + 1] = [[y for _, y in part] for part in parts]

    def _score(self, points, j, middle):
        sides = [[y for x, y in points if (x[j] >= middle) == upper] for upper in (False, True)]
        return sum(map(self._purity, sides))

    @staticmethod
    def _purity(labels):
        squares = sum(labels.count(y) ** 2 for y in set(labels))
        return Fraction(squares, len(labels)) if labels else Fraction(0)

    def counts(self, x, classes):
        k = self.find(x)
        labels = self.inherited[k] + [y for _, y in self.points[k]]
        return [labels.count(y) for y in range(classes)]


@settings(max_examples=25, deadline=None)
@given(generators, st.integers(1, 3), st.integers(2, 6), st.integers(2, 3))
def test_cells_equal_their_description(generator, d, enough, classes):
    grid = generator.integers(0, 9, (120, d)) / 8.0  # with edges and middles among the points
    truth = (grid.sum(axis=1) * classes / (d + 0.01)).astype(int)
    truth = np.where(generator.random(120) < 0.2, generator.integers(0, classes, 120), truth)
    cells = AdaptiveCells("c", unit_cube(d), classes, enough=enough)
    slow = Slow(d, enough)
    for x, y in zip(grid, truth.tolist(), strict=True):
        assert cells.counts[cells.path(x)[-1]] == slow.counts(x, classes)
        cells.learn(x[None], np.array([y]))
        slow.learn(x, y)
    assert cells.sides.count(INSIDE) == len(slow.boxes)


def test_chances_lean_on_the_cells_around():
    cells = AdaptiveCells("c", unit_cube(1), 2, enough=4, backoff=2.0)
    rows = np.array([[0.1], [0.2], [0.8], [0.9]])
    cells.learn(rows, np.array([0, 0, 1, 1]))
    assert cells.sides[0] == 0
    whole = (2 + 2 * 0.5) / (4 + 2)
    expected = (0 + 2 * whole) / (2 + 2), (2 + 2 * whole) / (2 + 2)
    odds = cells.log_odds(np.array([[0.3], [0.5]]))[:, 1]
    assert odds.tolist() == pytest.approx([np.log(p / (1 - p)) for p in expected])


def test_there_are_never_more_cells_than_allowed():
    rows, truth = stream(np.random.default_rng(0), 400, MIXED, 3)
    cells = AdaptiveCells("c", MIXED, 3, enough=2, most=9)
    cells.learn(rows, truth)
    assert len(cells.sides) == 9
    assert sum(cells.counts[0]) == 400
    assert np.isfinite(cells.log_odds(rows)).all()


def test_a_pure_cell_stays():
    cells = AdaptiveCells("c", unit_cube(2), 2, enough=2)
    cells.learn(np.random.default_rng(1).random((50, 2)), np.zeros(50, np.int64))
    assert cells.sides == [INSIDE]
    assert best_side(cells.tried[0]) == INSIDE


def test_a_state_that_does_not_join_is_refused():
    cells = AdaptiveCells("c", unit_cube(2), 2, enough=4)
    rows = np.random.default_rng(2).random((60, 2))
    cells.learn(rows, (rows[:, 0] > 0.4).astype(np.int64))
    state = cells.state()
    assert len(state["sides"]) > 3
    state["halves"] = state["halves"] + (state["sides"] != INSIDE)
    with pytest.raises(LearnerError, match="do not join"):
        cells.restore(state)
