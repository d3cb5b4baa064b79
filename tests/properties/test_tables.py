from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.tables import DenseTable, SparseTable

cells = st.lists(st.integers(0, 40), max_size=60)


def tables(width, dtype=np.int64, initial=None):
    return [DenseTable(41, width, dtype, initial), SparseTable(width, dtype, initial)]


@pytest.mark.parametrize("which", [0, 1])
@given(batches=st.lists(cells, max_size=5), spread=st.sampled_from([1, 2**40 + 12345]))
def test_a_table_counts_like_a_dictionary(which, batches, spread):
    spread = spread if which else 1
    table = tables(2)[which]
    model = defaultdict(lambda: [0, 0])
    for batch in batches:
        ids = np.array(batch, np.int64) * spread
        table.add(ids, np.stack([np.ones_like(ids), np.arange(len(ids))], axis=1))
        for i, cell in enumerate(ids.tolist()):
            model[cell][0] += 1
            model[cell][1] += i
        every = np.arange(41) * spread
        assert table.rows(every).tolist() == [model.get(c, [0, 0]) for c in every.tolist()]
    ids, rows = table.items()
    assert ids.tolist() == sorted(model)
    assert rows.tolist() == [model[c] for c in sorted(model)]
    assert len(table) == len(model)


@pytest.mark.parametrize("which", [0, 1])
@given(put=st.lists(st.integers(0, 40), unique=True, max_size=20))
def test_initial_rows_and_overwriting(which, put):
    table = tables(2, np.float64, initial=[1.0, -2.0])[which]
    table.put(np.array(put, np.int64), np.full((len(put), 2), 7.5))
    expected = [[7.5, 7.5] if c in put else [1.0, -2.0] for c in range(41)]
    assert table.rows(np.arange(41)).tolist() == expected
    assert len(table) == len(put)


def test_a_sparse_table_keeps_its_counts_while_it_grows():
    table = SparseTable(1)
    rng = np.random.default_rng(1)
    ids = rng.choice(2**62, 50_000, replace=False)
    for batch in np.array_split(ids, 37):
        table.add(batch, np.ones((len(batch), 1), np.int64))
    table.add(ids, np.ones((len(ids), 1), np.int64))
    assert (table.rows(ids) == 2).all()
    assert (table.rows(ids + 1) == 0).sum() >= len(ids) - np.isin(ids + 1, ids).sum()
    assert len(table) == len(ids)
    assert table.nbytes < 100 * len(ids)


def test_colliding_hashes_are_told_apart():
    """Ids that share the upper bits of their hash all probe the same neighbourhood."""
    table = SparseTable(1)
    inverse = pow(int(SparseTable._FIBONACCI), -1, 2**64)
    same = [(inverse * low) % 2**64 for low in range(400)]
    ids = np.array([i for i in same if i < 2**63], np.int64)
    assert len(set(table._hash(ids).tolist())) == 1
    table.add(ids, np.arange(len(ids))[:, None])
    assert table.rows(ids)[:, 0].tolist() == list(range(len(ids)))
