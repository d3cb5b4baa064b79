"""A crash after any numbered step of a commit leaves state and outputs exact."""

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

import orjson
import pytest
from aiokafka.errors import KafkaTimeoutError

from streams.engine.state import CountsTable, EntriesTable, Store
from streams.engine.tasks.commit import Step
from tests.streams.engine_kit import (
    CELLS,
    committed,
    config,
    create_topics,
    ids,
    produce,
    running,
    spec,
    until,
)

RECORDS = 1_000
ROOT = Path(__file__).parents[2]
SMALL = {"max_records": 100, "chunk_records": 50, "backoff": 0.02}


async def prepare(address, prefix, folder):
    conf, agent = config(address, prefix, folder, **SMALL), spec(prefix)
    await create_topics(address, conf, [agent], prefix + "out")
    # Ids repeat, so that state read in a wrong version would show in the outputs.
    await produce(address, prefix + "in", ids(n % 300 for n in range(RECORDS)))
    return conf, agent


async def check_exact(address, prefix, conf):
    """Compare outputs and stored state with a recomputation from the input."""
    seen, expected = Counter(), []
    for record in await committed(address, prefix + "in"):
        number = orjson.loads(record.value)["id"]
        expected.append({"id": number, "before": seen[number]})
        seen[number] += 1
    found = [orjson.loads(r.value) for r in await committed(address, prefix + "out")]
    assert found == expected
    counts, entries = CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")
    with Store(conf.state_folder("count", 0) / "0", ["counts", "seen"]) as store:
        counts.load(store)
        entries.load(store)
        assert dict(entries.items()) == {b"%d" % n: b"%d" % c for n, c in seen.items()}
        assert store.positions == {prefix + "in": RECORDS}
    cells = Counter()
    for number, count in seen.items():
        cells[number % CELLS] += count
    assert dict(zip(*[a.ravel().tolist() for a in counts.items()], strict=True)) == cells


async def finish(conf, agent, prefix):
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].positions.get(prefix + "in") == RECORDS)


@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name.lower())
async def test_a_process_killed_after_a_step(broker_address, prefix, tmp_path, step):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.streams.crash_child",
        broker_address,
        prefix,
        str(tmp_path),
        str(int(step)),
        cwd=ROOT,
    )
    assert await asyncio.wait_for(child.wait(), 120) == -signal.SIGKILL
    # Two or three transactions are visible, by the step at which the third was cut.
    visible = len(await committed(broker_address, prefix + "out"))
    least = 2 if step < Step.COMMITTED else 3
    assert 50 * least <= visible <= 150 * least
    await finish(conf, agent, prefix)
    await check_exact(broker_address, prefix, conf)


@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name.lower())
async def test_an_indefinite_error_after_a_step(broker_address, prefix, tmp_path, step):
    """The task opens itself again and learns from the broker what was decided."""
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    calls = 0

    async def fail(at):
        nonlocal calls
        calls += at is step
        if at is step and calls == 3:
            raise KafkaTimeoutError

    async with running(conf, agent, hook=fail) as group:
        await until(lambda: group.statuses()[0].positions.get(prefix + "in") == RECORDS)
        assert group.statuses()[0].reopenings == 1
    await check_exact(broker_address, prefix, conf)
