"""What monitoring costs a worker: compared with an unwatched one, and counted inside one.

The cost is one or two percent, and on a shared machine two runs of the same program differ by more
than that. So there are two measures:

pairs    A watched and an unwatched worker run at the same time, each on its own topics
         with the same patients, all published before: what slows the machine slows both. Which one
         is started first alternates. The mean of several pairs counts, of the rate and of the
         processor time from start to end. A single pair is off by three or four percent,
         as are two workers that are both unwatched.
share    One worker measures, for each step of its event loop, what the step is for
         (`bench.monitoring.counting_worker`): what slows it slows both sides of the ratio. What it
         costs others, such as the broker, is not in it.
"""

import asyncio
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import orjson

from bench.monitoring import counting_worker
from bench.monitoring.counting_worker import WATCHING as SEEN
from bench.monitoring.watcher import watched
from bench.pipeline.job import SERVED, settings_file, worker
from bench.pipeline.measured_run import Rival, prepared
from bench.pipeline.output_stamps import rate, wait_for
from bench.processes import await_page, running

PAIRS, QUICK_PAIRS = 15, 7
_PATIENCE = 60.0
_SHARES = {"watching_share": 1, "watching_share_of_hundred_pages": 100}
"""How many consoles are open."""
_REPORT = "shares.json"


def _watched_worker(folder: Path) -> list[list[str]]:
    return worker(folder, *SERVED)


def _counting_worker(folder: Path) -> list[list[str]]:
    return [
        [
            sys.executable,
            "-m",
            counting_worker.__name__,
            str(settings_file(folder)),
            str(folder / _REPORT),
        ]
    ]


ALONE = Rival("alone", 200_000, 50_000, worker, learns=True)
WATCHED = replace(ALONE, name="watched", programs=_watched_worker, pages=1)
COUNTING = replace(WATCHED, name="counting", programs=_counting_worker)


class Cost(NamedTuple):
    """The share of its rate that a worker loses by being watched, and of its processor time."""

    rate: float
    cpu: float


class Used(NamedTuple):
    """What a worker took to process its patients."""

    rate: float
    cpu_seconds: float


def pairs(quick: bool) -> int:
    """Return how many pairs are compared."""
    return QUICK_PAIRS if quick else PAIRS


def steps(quick: bool) -> int:
    """Return how many runs it takes."""
    return pairs(quick) + len(_SHARES)


def measure(
    address: str, quick: bool, seed: int, tick: Callable[[], object]
) -> tuple[dict[str, float], list[Cost]]:
    """Return figures, and what each pair showed."""
    costs = []
    for number in range(pairs(quick)):
        sides = (ALONE, WATCHED) if number % 2 else (WATCHED, ALONE)
        used = dict(zip(sides, together(address, sides, quick, seed + number), strict=True))
        alone, observed = used[ALONE], used[WATCHED]
        costs.append(
            Cost(1.0 - observed.rate / alone.rate, 1.0 - alone.cpu_seconds / observed.cpu_seconds)
        )
        tick()
    shares = {}
    for name, pages in _SHARES.items():
        shares[name] = counted_share(address, quick, seed, pages)
        tick()
    return figures(costs) | shares, costs


def figures(costs: Sequence[Cost]) -> dict[str, float]:
    """Return the means of some pairs, each with its standard error."""
    named = {
        "watching_cost": [cost.rate for cost in costs],
        "watching_cpu_cost": [cost.cpu for cost in costs],
    }
    means = {name: fmean(values) for name, values in named.items()}
    return means | {f"{name}_se": mean_error(values) for name, values in named.items()}


def mean_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of some values.

    >>> round(mean_error([0.1, 0.2, 0.3, 0.4, 0.5]), 3)
    0.071
    """
    return stdev(values) / math.sqrt(len(values))


def counted_share(address: str, quick: bool, seed: int, pages: int) -> float:
    """Return the fraction of a worker's processor time that is spent on monitoring."""
    with ExitStack() as stack:
        (folder,) = folders = _folders(stack, 1)
        side = replace(COUNTING, pages=pages)
        asyncio.run(_run(address, (side,), folders, quick, seed))
        counted = orjson.loads((folder / _REPORT).read_bytes())
    return float(counted[SEEN] / sum(counted.values()))


def together(address: str, sides: Sequence[Rival], quick: bool, seed: int) -> list[Used]:
    """Run workers at the same time."""
    with ExitStack() as stack:
        return asyncio.run(_run(address, sides, _folders(stack, len(sides)), quick, seed))


def _folders(stack: ExitStack, number: int) -> list[Path]:
    folders = [tempfile.TemporaryDirectory(prefix="hb-bench-") for _ in range(number)]
    return [Path(stack.enter_context(folder)) for folder in folders]


async def _run(
    address: str, sides: Sequence[Rival], folders: Sequence[Path], quick: bool, seed: int
) -> list[Used]:
    sites = [
        await prepared(address, side, folder, quick, seed)
        for side, folder in zip(sides, folders, strict=True)
    ]
    async with AsyncExitStack() as stack:
        programs = [stack.enter_context(running(site.commands, site.folder)) for site in sites]

        async def one(number: int) -> float:
            site, its = sites[number], programs[number]
            await await_page(site.settings.worker.state)
            before = its.cpu_seconds
            async with AsyncExitStack() as pages:
                if site.rival.pages:
                    await pages.enter_async_context(watched(site.settings, site.rival.pages))
                await wait_for(site.settings, site.outputs, site.patients, _PATIENCE)
                return its.cpu_seconds - before

        used = await asyncio.gather(*[one(number) for number in range(len(sites))])
    return [
        Used(rate(await site.results(), site.patients), seconds)
        for site, seconds in zip(sites, used, strict=True)
    ]
