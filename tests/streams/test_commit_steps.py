"""A crash after any numbered step of a commit leaves state and outputs exact."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from aiokafka.errors import KafkaTimeoutError

from streams.engine.tasks.commit import Step
from tests.streams.engine_kit import running
from tests.streams.exactly_once_kit import Job

RECORDS = 1_000
ROOT = Path(__file__).parents[2]
SMALL = {"max_records": 100, "chunk_records": 50, "backoff": 0.02}


@pytest.fixture
async def job(broker_address, prefix, tmp_path):
    job = Job(broker_address, prefix, tmp_path, RECORDS, through=broker_address, **SMALL)
    await job.prepare()
    return job


@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name.lower())
async def test_a_process_killed_after_a_step(job, broker_address, prefix, tmp_path, step):
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
    visible = len(await job.visible())
    least = 2 if step < Step.COMMITTED else 3
    assert 50 * least <= visible <= 150 * least
    async with running(job.config, job.agent) as group:
        await job.finish(group)
    await job.check_exact()


@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name.lower())
async def test_an_indefinite_error_after_a_step(job, step):
    """The task opens itself again and learns from the broker what was decided."""
    calls = 0

    async def fail(at):
        nonlocal calls
        calls += at is step
        if at is step and calls == 3:
            raise KafkaTimeoutError

    async with running(job.config, job.agent, hook=fail) as group:
        await job.finish(group)
        assert group.statuses()[0].reopenings == 1
    await job.check_exact()
