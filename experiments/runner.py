"""Runs experiments one after another or one per core; the results are the same."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Thread
from time import perf_counter, process_time
from typing import Any

from experiments.catalogue import CATALOGUE, Options, Tick
from experiments.process_pool import cores, end_with_parent
from experiments.report.result import Result

Ticked = Callable[[str], object]
Done = Callable[[str, Result], object]
TIMED = ("speed",)
"""Experiments that measure time: nothing else runs alongside them."""

_ticks: Any = None
"""In a worker process: the queue on which it reports progress."""


def run_one(name: str, options: Options, tick: Tick = lambda: None) -> Result:
    """Run one experiment and record how long it took."""
    started, busy = perf_counter(), process_time()
    result = CATALOGUE[name].run(options, tick)
    result.seconds = perf_counter() - started
    result.cpu_seconds = process_time() - busy
    return result


def run_each(
    names: Sequence[str], options: Options, *, ticked: Ticked, done: Done, jobs: int | None = None
) -> None:
    """Run experiments; `done` gets each result as soon as it is ready.

    With several jobs each experiment gets one core, longest first, so that no long one is left
    running at the end. A single experiment may spread its own work over the cores instead.
    """
    jobs = jobs or cores()
    alone = [name for name in names if name in TIMED]
    parallel = [name for name in names if name not in TIMED]
    if jobs > 1 and len(parallel) > 1:
        _run_beside(parallel, options, ticked, done, min(jobs, len(parallel)))
    else:
        alone = parallel + alone
    for name in alone:
        done(name, run_one(name, options, lambda name=name: ticked(name)))  # type: ignore[misc]  # mypy cannot infer a lambda with a default


def _run_beside(
    names: Sequence[str], options: Options, ticked: Ticked, done: Done, jobs: int
) -> None:
    context = get_context("spawn")
    ticks = context.SimpleQueue()
    longest_first = sorted(names, key=lambda name: -CATALOGUE[name].seconds)
    with (
        _drained(ticks, ticked),
        ProcessPoolExecutor(jobs, context, _start, (ticks,)) as pool,
    ):
        waiting = {pool.submit(_work, name, options): name for name in longest_first}
        try:
            for future in as_completed(waiting):
                done(waiting[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _drained(ticks: Any, ticked: Ticked) -> Iterator[None]:
    """Forward the workers' progress reports, in a thread, while the block runs."""

    def drain() -> None:
        while (name := ticks.get()) is not None:
            ticked(name)

    thread = Thread(target=drain, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ticks.put(None)
        thread.join()


def _start(ticks: Any) -> None:
    global _ticks  # noqa: PLW0603 - a worker process has nowhere else to keep it
    _ticks = ticks
    end_with_parent()
    # The other cores are busy with other experiments.
    os.environ["HB_JOBS"] = "1"


def _work(name: str, options: Options) -> Result:
    return run_one(name, options, lambda: _ticks.put(name))
