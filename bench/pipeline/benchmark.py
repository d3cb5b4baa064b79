"""The pipeline end to end against a raw relay and plain Faust agents, in turn on one broker.

Each has its own topics with the same patients and labels, published before it starts. Its rate is
patients over the time from the first to the last record of its outputs, by the broker's timestamps:
so start-up does not count, nothing else runs at the same time, and no contender measures itself.

    ours          `hb worker`: one process with all roles, exactly once; until the last label is
                  learned by all learners
    raw_relay     one process, see `bench.pipeline.peers.raw_relay`
    plain_faust   four processes, one for each role
    secure        ours, on a second broker with TLS, a log-in and access control

The first run on a broker is not counted: Java compiles what it needs while it runs, and a broker
with TLS needs more. After that contenders take turns. A ratio is the median of those of the rounds,
since a neighbour's load slows the contenders of one round alike.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.monitoring import cost as watching_cost
from bench.monitoring.cost import Cost
from bench.pipeline.job import LEARNERS, settings_file, worker
from bench.pipeline.measured_run import Rival, prepared
from bench.pipeline.output_stamps import rate, wait_for
from bench.pipeline.peers import plain_faust as agents_in_faust
from bench.pipeline.peers import raw_relay
from bench.processes import running
from settings.sections.broker import BrokerSettings
from streams.broker import USER
from streams.broker.reaper import temporary_broker
from streams.kafka.connection import quiet_client
from streams.kafka.topics import ENSEMBLE

_PATIENCE = 60.0


def relay(folder: Path) -> list[list[str]]:
    """Return the command of the relay."""
    return [[sys.executable, "-m", raw_relay.__name__, str(settings_file(folder))]]


def plain_faust(folder: Path) -> list[list[str]]:
    """Return the commands of the Faust agents: a process for each role."""
    program = [sys.executable, "-m", agents_in_faust.__name__, str(settings_file(folder))]
    return [[*program, str(folder / name), name] for name in (*LEARNERS, ENSEMBLE)]


OURS = Rival("ours", 200_000, 50_000, worker, learns=True)
RIVALS = (
    OURS,
    Rival("raw_relay", 400_000, 100_000, relay),
    Rival("plain_faust", 3_000, 1_500, plain_faust),
)


SECURE = replace(OURS, name="secure")


def steps(rounds: int, quick: bool, watching: bool, secure: bool = False) -> int:
    """Return how many runs a benchmark takes."""
    rivals = len(RIVALS) + secure
    return (1 + secure) + rounds * rivals + (watching_cost.steps(quick) if watching else 0)


def run(
    rounds: int,
    quick: bool,
    watching: bool,
    seed: int,
    tick: Callable[[], object],
    *,
    secure: bool = False,
) -> dict[str, Any]:
    """Measure each contender `rounds` times in turn; figures are those of its best run."""
    quiet_client()
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        broker = stack.enter_context(temporary_broker())
        places = {OURS: broker.settings()}
        if secure:  # right after ours, so that both see the same machine
            places[SECURE] = stack.enter_context(temporary_broker(users=(USER,))).settings()
        places |= {rival: broker.settings() for rival in RIVALS}
        for rival in (OURS, SECURE) if secure else (OURS,):
            asyncio.run(_one(places[rival], rival, True, seed))
            tick()
        for number in range(rounds):
            for rival, place in places.items():
                speed = asyncio.run(_one(place, rival, quick, seed + number))
                rates.setdefault(rival.name, []).append(speed)
                tick()
        best = {name: max(speed) for name, speed in rates.items()}
        figures = {f"{name}_patients_per_second": fastest for name, fastest in best.items()}
        costs: list[Cost] = []
        if watching:
            extra, costs = watching_cost.measure(broker.address, quick, seed, tick)
            figures |= extra
    return {
        "settings": {"rounds": rounds, "quick": quick, "seed": seed, "partitions": 1},
        "figures": figures,
        "watching_costs": [cost._asdict() for cost in costs],
        **_ratios(rates),
    }


def _ratios(rates: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """Return the median ratios, those of the rounds they come from, and all rates.

    >>> rates = {"ours": [90.0, 50.0], "raw_relay": [100.0, 100.0], "plain_faust": [1.0, 1.0]}
    >>> _ratios(rates)["ratios"]
    {'raw_relay': 0.7, 'plain_faust': 70.0}
    """
    compared = {name: (OURS.name, name) for name in ("raw_relay", "plain_faust")}
    if SECURE.name in rates:
        compared["plaintext"] = (SECURE.name, OURS.name)
    by_round = {
        name: [own / theirs for own, theirs in zip(rates[mine], rates[rival], strict=True)]
        for name, (mine, rival) in compared.items()
    }
    return {
        "ratios": {name: median(ratios) for name, ratios in by_round.items()},
        "ratios_of_rounds": by_round,
        "patients_per_second_of_rounds": {name: list(speeds) for name, speeds in rates.items()},
    }


async def _one(broker: BrokerSettings, rival: Rival, quick: bool, seed: int) -> float:
    """Carry out one run; return the patients per second."""
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as name:
        site = await prepared(broker, rival, Path(name), quick, seed)
        with running(site.commands, site.folder):
            await wait_for(site.settings, site.outputs, site.patients, _PATIENCE)
        return rate(await site.results(), site.patients)
