"""The garbage collector of a worker: it need not walk over what stays.

A task's state is large and lives long; records are many, small and short-lived, and few of them can
be part of a cycle. Python's collector looks for cycles after every 700 new objects, which is many
times in a batch, and now and then in everything there is.
"""

import gc

_YOUNG = 50_000
"""New objects before the collector looks at them: some batches' worth."""


def calm() -> None:
    """Let the collector run less often."""
    gc.set_threshold(_YOUNG, 20, 20)


def settle(*, again: bool) -> None:
    """Keep what is there now out of the collector's rounds.

    `again` says that something as large has just been dropped: then that is collected first.
    """
    if again:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
