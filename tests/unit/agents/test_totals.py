"""Totals: what is put into a row comes out of it."""

import numpy as np
import pytest

from agents.totals import (
    CUBES,
    EXPLORED,
    INSTANCES,
    LOST,
    PREDICTED,
    THIN,
    WAITING,
    EnsembleTotals,
    LocalTotals,
    local_width,
    summed,
)
from learners.join import COUNTERS
from learners.local.iup import Choices
from learners.local.learner import Predictions
from learners.theory.regret import local_regret_parts
from streams.engine.state.counts import CountsTable
from tests.unit.agents.toy import SETTINGS


def test_the_ensembles_row_has_all_of_it():
    counts = {name: i for i, name in enumerate(COUNTERS)}
    sizes = {name: 100 + i for i, name in enumerate(WAITING)} | {"over": 7}
    totals = EnsembleTotals.of(counts, sizes, np.array([5, 6, 7]))
    assert totals.row.shape == (EnsembleTotals.width(SETTINGS),)
    assert totals.counts == counts
    assert totals.waiting == {name: sizes[name] for name in WAITING}
    assert (totals.disagreements, totals.predicted.tolist()) == (5, [6, 7])


@pytest.mark.parametrize(("rows", "expected"), [([], [0, 0]), ([[1, 2], [3, 4]], [4, 6])])
def test_sums_over_partitions(rows, expected):
    assert summed([np.array(row) for row in rows], 2).tolist() == expected


@pytest.fixture
def table():
    return CountsTable("totals", local_width(SETTINGS), cells=1)


def test_decisions_are_counted(table):
    totals = LocalTotals(table, rules=1)
    choices = Choices(
        1, np.arange(3), np.zeros(3, np.int64), np.array([True, False, False]),
        np.array([0, 9, 10]), np.zeros(3, np.int64),
    )  # fmt: skip
    predictions = Predictions(
        choices, np.array([1, 1, 0]), np.zeros((3, 1), np.int64), np.zeros((3, 2))
    )
    for _ in range(2):
        totals.decided(predictions)
    counts = [totals.read(column) for column in (INSTANCES, EXPLORED, THIN)]
    assert counts == [6, 2, 4]
    assert [totals.read(PREDICTED), totals.read(PREDICTED + 1)] == [2, 4]
    assert len(table.drain()) == 1


def test_lessons_are_written_and_what_is_new_in_them_counted(table):
    totals, counts = LocalTotals(table, rules=2), CountsTable("counts", 4)
    first = np.array([[3, 1, 1, 1], [2, 0, 1, 0]])
    second = np.array([[3, 2, 1, 2], [1, 1, 0, 1]])
    totals.learned(counts, np.array([5, 7]), first)
    totals.learned(counts, np.array([5, 9]), second)
    assert counts.items()[0].tolist() == [5, 7, 9]
    assert totals.read(CUBES) == 3
    rows = counts.items()[1]
    assert totals.read(LOST) == local_regret_parts(rows, 2).sum() > 0
