"""Spreads independent work over several cores; the results do not depend on how many."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def cores() -> int:
    """Return how many processes to use: HB_JOBS, or one per core."""
    return max(1, int(os.environ.get("HB_JOBS", os.cpu_count() or 1)))


def end_with_parent() -> None:
    """Make this worker process exit when its parent does, for whatever reason.

    Otherwise a pool's workers would finish their current item, which may take many minutes.
    """
    parent = parent_process()
    assert parent is not None  # noqa: S101 - called in workers only

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def spread(
    work: Callable[[Item], Made],
    items: Iterable[Item],
    *,
    jobs: int | None = None,
    tick: Callable[[], object] = lambda: None,
) -> list[Made]:
    """Return `work(item)` for each item, in order; one job runs in this process."""
    return list(_each(work, list(items), jobs or cores(), tick))


def _each(
    work: Callable[[Item], Made], items: list[Item], jobs: int, tick: Callable[[], object]
) -> Iterator[Made]:
    if jobs == 1 or len(items) == 1:
        for item in items:
            yield work(item)
            tick()
        return
    for result in _pool(jobs).map(work, items):
        yield result
        tick()


@cache
def _pool(jobs: int) -> ProcessPoolExecutor:
    """Return the pool, which is kept: each process takes seconds to import what it needs.

    The interpreters are fresh, because a fork would copy the threads of numerical libraries.
    """
    return ProcessPoolExecutor(jobs, get_context("spawn"), end_with_parent)
