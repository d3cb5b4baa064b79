"""Hypothesis strategies that several tests share."""

import numpy as np
from hypothesis import strategies as st

unit_values = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 2 / 3, 0.25, 0.75, np.nextafter(1.0, 0.0)]),
)
"""Points of [0, 1] with the edges of small partitions well represented."""

generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
"""Seeded generators, for data too large to draw value by value."""


@st.composite
def cuts(draw, total: int):
    """Positions that cut a stream of `total` items into batches."""
    inner = draw(st.lists(st.integers(1, max(1, total - 1)), max_size=6, unique=True))
    return [0, *sorted(i for i in inner if i < total), total]
