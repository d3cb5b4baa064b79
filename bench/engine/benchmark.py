"""The engine against other stream processors: the same job on the same broker, in turn."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.engine.rivals import Missing, Rival, rivals
from bench.engine.workload import Result, create, fill, measure, wait_for_outputs
from bench.processes import running
from settings.errors import HbError
from streams.broker.reaper import temporary_broker
from streams.kafka.connection import quiet_client

_PATIENCE = 60.0
_EXACT = ("engine", "quix_exactly_once", "kafka_streams_exactly_once")


def steps(rounds: int) -> int:
    """Return how many runs a benchmark takes."""
    return rounds * len(rivals())


def run(rounds: int, quick: bool, tick: Callable[[], object]) -> dict[str, Any]:
    """Measure each contender `rounds` times in turn; its best run counts."""
    quiet_client()
    results: dict[str, list[Result]] = {}
    skipped: dict[str, str] = {}
    with temporary_broker() as broker:
        for rival in rivals() * rounds:
            try:
                result = asyncio.run(_one(broker.address, rival, quick))
                results.setdefault(rival.name, []).append(result)
            except Missing as reason:
                skipped[rival.name] = str(reason)
            tick()
    return _report(results, skipped, rounds, quick)


def _report(
    results: dict[str, list[Result]], skipped: dict[str, str], rounds: int, quick: bool
) -> dict[str, Any]:
    for name in _EXACT:
        _check_exact(name, results.get(name, ()))
    rates = {name: max(run.rate for run in runs) for name, runs in results.items()}
    return {
        "settings": {"rounds": rounds, "quick": quick, "partitions": 1},
        "figures": {f"{name}_per_second": rate for name, rate in rates.items()},
        "ratios": {n: rates["engine"] / rate for n, rate in rates.items() if n != "engine"},
        "skipped": skipped,
    }


def _check_exact(name: str, results: Iterable[Result]) -> None:
    for result in results:
        if not result.records == result.outputs == result.distinct:
            raise HbError(
                f"{name} is not exactly once: {result.records} records in, {result.outputs} out,"
                f" {result.distinct} of them distinct"
            )


async def _one(address: str, rival: Rival, quick: bool) -> Result:
    records = rival.quick if quick else rival.records
    prefix = f"b{uuid4().hex[:8]}."
    command = rival.command()
    await create(address, [prefix + "in", prefix + "dead"])
    await create(address, [prefix + "count.changelog"], {"cleanup.policy": "compact"})
    await create(address, [prefix + "out"], {"message.timestamp.type": "LogAppendTime"})
    await fill(address, prefix + "in", records)
    with tempfile.TemporaryDirectory(prefix="hb-bench-") as folder:
        program = [*command, address, prefix, f"{folder}/state", *rival.options]
        with running([program], Path(folder)):
            await wait_for_outputs(address, prefix + "out", records, _PATIENCE)
    return await measure(address, prefix + "out", records)
