"""Comparing tables, value by value."""

import numpy as np

from audit.findings import Findings
from learners.arrays.tables import CellTable, Rows
from learners.arrays.types import State


def compare_tables(
    findings: Findings,
    name: str,
    where: str,
    live: CellTable,
    recomputed: CellTable,
    *,
    whole: bool,
) -> None:
    """Compare a live table with the recomputed one.

    If the start of the topics is gone (`whole` is False), what is left gives lower bounds only.
    """
    cells = np.union1d(live.items()[0], recomputed.items()[0])
    actual, expected = live.rows(cells), recomputed.rows(cells)
    note = ""
    if whole:
        differs = ~_same(actual, expected)
    elif live.dtype.kind == "f":
        differs = np.zeros(actual.shape, np.bool_)
        note = "not compared: the start of its topics is gone"
    else:
        differs, note = actual < expected, "lower bounds only: the start of its topics is gone"
    values, differing = int(differs.size), int(differs.sum())
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
