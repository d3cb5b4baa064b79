"""Tunes a worker's garbage collector, which need not visit long-lived objects.

A task's state is large and lives long; records are many, small and short-lived, and few of them can
be part of a cycle. Python's collector looks for cycles after every 700 new objects, which is many
times per batch, and now and then it visits every object.
"""

import gc

_YOUNG = 50_000
"""New objects before the collector looks at them: a few batches' worth."""


def calm() -> None:
    """Make the collector run less often."""
    gc.set_threshold(_YOUNG, 20, 20)


def settle(*, again: bool) -> None:
    """Exclude everything that exists now from garbage collection.

    `again` means that an earlier, similarly large state was just dropped: it is collected first.
    """
    if again:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
