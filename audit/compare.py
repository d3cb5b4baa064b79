"""Tables held against each other, value by value."""

import numpy as np

from audit.findings import Findings
from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import State


def compare_tables(
    findings: Findings, name: str, where: str, live: CellTable, again: CellTable, *, whole: bool
) -> None:
    """Hold a live table against the recomputed one.

    If the start of the topics is gone, what is left of them gives lower bounds only: `whole` False.
    """
    cells = np.union1d(live.items()[0], again.items()[0])
    ours, theirs = live.rows(cells), again.rows(cells)
    note = ""
    if whole:
        wrong = ~_same(ours, theirs)
    elif live.dtype.kind == "f":
        wrong, note = (
            np.zeros(ours.shape, np.bool_),
            "not compared: the start of its topics is gone",
        )
    else:
        wrong, note = ours < theirs, "lower bounds only: the start of its topics is gone"
    values, differing = int(wrong.size), int(wrong.sum())
    findings.table(name, where, values=values, differing=differing, note=note)


def _same(a: Rows, b: Rows) -> Rows:
    """Compare bit by bit, so that nan equals nan and 0.0 is not -0.0."""
    return np.asarray(a.view(np.int64) == b.view(np.int64))


def same_state(a: State, b: State) -> int:
    """Return how many of the arrays of two states differ in any bit."""
    names = a.keys() | b.keys()
    return sum(not (n in a and n in b and _identical(a[n], b[n])) for n in names)


def _identical(a: Rows, b: Rows) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
