"""Rounds over cells, and pooling."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.rounds import Rounds, mean_by_count


@given(st.lists(st.integers(-3, 12), max_size=60))
def test_rounds_take_every_instance_once_and_each_cells_in_order(cells):
    cells = np.array(cells, np.int64)
    plan = Rounds.of(cells)
    met: dict[int, list[int]] = {}
    for size, part in plan:
        rows = plan.order[part]
        assert len(rows) == size
        assert (cells[rows] == plan.cells[:size]).all()
        for row in rows.tolist():
            met.setdefault(int(cells[row]), []).append(row)
    assert met == {
        int(cell): np.flatnonzero(cells == cell).tolist() for cell in set(cells.tolist())
    }
    assert plan.counts.tolist() == [len(met[cell]) for cell in plan.cells.tolist()]


def test_the_mean_is_weighted_by_count_and_an_untouched_row_stays():
    rows = np.array([[[3.0, 1.0], [0.0, 0.7]], [[1.0, 5.0], [0.0, 0.7]]])
    assert mean_by_count(rows).tolist() == [[4.0, 2.0], [0.0, 0.7]]
