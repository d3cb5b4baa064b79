import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learners.local.features import Categorical, FeatureSpace, Real, unit_cube
from learners.local.partition import Partition, cuts_for
from learners.local.scaling import MinMax, Quantile, ZLogistic
from tests.strategies import unit_values


@given(
    x=arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=unit_values),
    m=st.integers(1, 7),
)
def test_every_point_has_exactly_one_cell(x, m):
    partition = Partition(unit_cube(x.shape[1]), m)
    cells = partition.cells(x)
    assert ((cells >= 0) & (cells < partition.size)).all()
    digits = partition.digits(cells)
    # Edges included: the point lies in the half-open cell of its digits, x = 1 in the last.
    assert ((digits <= x * m) & ((x * m < digits + 1) | (digits == m - 1))).all()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 4), st.data())
def test_cell_ids_are_a_bijection_with_digits(categories, m, data):
    space = FeatureSpace(
        tuple(
            Categorical(f"f{j}", tuple(map(str, range(count))))
            if count > 1
            else Real(f"f{j}", MinMax(0, 1))
            for j, count in enumerate(categories)
        )
    )
    partition = Partition(space, m)
    digits = np.array([[data.draw(st.integers(0, r - 1)) for r in partition.radices.tolist()]])
    cells = partition.cells((digits + 0.5) / partition.radices)
    assert partition.digits(cells).tolist() == digits.tolist()


incomplete = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 5)),
    elements=st.one_of(unit_values, st.just(np.nan)),
)


@given(x=incomplete, m=st.integers(1, 5))
def test_a_missing_value_has_a_part_of_its_own_on_every_axis_that_is_cut(x, m):
    partition = Partition(unit_cube(x.shape[1]), m)
    cells = partition.cells(x)
    digits, missing = partition.grid.digits(cells)
    assert all(map(partition.grid.holds, cells.tolist()))
    assert (missing == (np.isnan(x) & (m > 1))).all()
    complete = ~missing.any(axis=1)
    assert (cells[complete] == partition.cells(np.nan_to_num(x[complete]))).all()
    assert (cells[~complete] >= partition.size).all()
    present = ~missing
    assert (digits[present] == np.minimum(np.floor(np.nan_to_num(x) * m), m - 1)[present]).all()


@given(x=incomplete, m=st.integers(1, 5))
def test_coarser_cells_contain_the_finer_ones_of_incomplete_points(x, m):
    partition = Partition(unit_cube(x.shape[1]), m)
    cells = partition.cells(x)
    for level in partition.coarser:
        coarse = level.cells(cells)
        for cell in np.unique(cells):
            assert len(np.unique(coarse[cells == cell])) == 1
    if partition.coarser:
        assert (partition.coarser[-1].cells(cells) == 0).all()


def test_too_many_incomplete_cells_to_number_become_one():
    partition = Partition(unit_cube(40), 2)
    x = np.full((2, 40), 0.7)
    x[0, 3] = x[1, 30] = np.nan
    cells = partition.cells(x)
    assert cells[0] == cells[1] >= partition.size
    assert [int(level.cells(cells)[0]) for level in partition.coarser][-1] == 0


@given(x=arrays(np.float64, st.integers(1, 20), elements=unit_values))
def test_halving_is_the_general_rule_for_two_cuts(x):
    halves = Partition(unit_cube(1), 2).cells(x[:, None])
    assert halves.tolist() == [min(math.floor(v * 2), 1) for v in x]


@given(st.integers(2, 12), st.integers(1, 12), st.integers(1, 4))
def test_a_perfect_power_is_not_rounded_up(m, d, alpha):
    T = m ** (2 * alpha + d)
    assert cuts_for(T, alpha, d) == m
    if T < 2**30:
        assert cuts_for(T + 1, alpha, d) == m + 1
    assert cuts_for(T, alpha, d, max_cuts=1) == 1


@given(
    values=arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6)),
    new=arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e300, 1e300)),
    kind=st.sampled_from([MinMax, ZLogistic, Quantile]),
)
def test_every_scaling_is_a_non_decreasing_map_into_the_unit_interval(values, new, kind):
    scaling = kind.fit(values)
    scaled = kind.apply([scaling], np.sort(new)[:, None])[:, 0]
    assert ((scaled >= 0) & (scaled <= 1)).all()
    assert (np.diff(scaled) >= 0).all()
