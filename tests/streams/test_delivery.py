"""Requests that get no answer, or arrive when they are no longer expected: all stays exact."""

import asyncio

import pytest
from aiokafka.errors import InvalidProducerEpoch

from bench.faults.kafka_proxy import Action, Api, Direction, Fault, KafkaProxy
from tests.streams.engine_kit import PATIENCE, running
from tests.streams.exactly_once_kit import Job

RECORDS = 1_600
HASTY = {
    "max_records": 200,
    "chunk_records": 100,
    "batch_bytes": 2_000,
    "backoff": 0.02,
    "request_timeout": 1.0,
}
"""Small transactions of several Produce requests each, and little patience."""


@pytest.fixture
async def proxy(broker_address):
    async with KafkaProxy(broker_address) as proxy:
        yield proxy


@pytest.fixture
async def job(broker_address, proxy, prefix, tmp_path):
    job = Job(broker_address, prefix, tmp_path, RECORDS, through=proxy.address, **HASTY)
    await job.prepare()
    return job


def refused(answered):
    """Tell whether a late request about a transaction was refused for its epoch."""
    (answer,) = answered.struck
    return int.from_bytes(answer.data[-2:], "big") == InvalidProducerEpoch.errno


async def test_an_end_of_transaction_that_arrives_during_the_next_one(job, proxy):
    late = proxy.add(Fault(Action.HOLD, {Api.END_TXN}, limit=1))
    async with running(job.config, job.agent) as group, asyncio.timeout(PATIENCE):
        await late.wait_for()
        # The next transaction is half-way: its first records are in, the others are not.
        proxy.add(Fault(Action.DELAY, {Api.PRODUCE}, limit=1))
        second = proxy.add(Fault(Action.HOLD, {Api.PRODUCE}, limit=1))
        await second.wait_for()
        places = {frame.connection for frame in late.struck}
        answered = proxy.add(
            Fault(Action.DELAY, {Api.END_TXN}, Direction.RESPONSE, connections=places, limit=1)
        )
        late.release()
        await answered.wait_for()
        assert refused(answered)
        second.release()
        await job.finish(group)
    await job.check_exact()


REQUESTS = [Api.INIT_PRODUCER_ID, Api.FIND_COORDINATOR, Api.ADD_PARTITIONS_TO_TXN, Api.PRODUCE]


@pytest.mark.parametrize("api", [*REQUESTS, Api.END_TXN], ids=lambda api: api.name.lower())
async def test_a_request_that_arrives_long_after_its_sender_gave_up(job, proxy, prefix, api):
    late = proxy.add(Fault(Action.HOLD, {api}, client=f"{prefix}count.0", limit=1))
    async with running(job.config, job.agent) as group, asyncio.timeout(PATIENCE):
        await late.wait_for()
        (held,) = late.struck
        # Some transactions later the next one is under way: its records are in, not its end.
        passed = proxy.add(Fault(Action.DELAY, {Api.END_TXN}, limit=3))
        await passed.wait_for(3)
        end = proxy.add(Fault(Action.HOLD, {Api.END_TXN}, limit=1))
        await end.wait_for()
        answered = proxy.add(
            Fault(Action.DELAY, {api}, Direction.RESPONSE, connections={held.connection}, limit=1)
        )
        late.release()
        await answered.wait_for()
        if api in (Api.ADD_PARTITIONS_TO_TXN, Api.END_TXN):
            assert refused(answered)
        end.release()
        await job.finish(group)
    await job.check_exact()


@pytest.mark.parametrize("action", [Action.DROP, Action.CUT], ids=lambda action: action.value)
@pytest.mark.parametrize("direction", list(Direction), ids=lambda direction: direction.value)
async def test_connections_lost_before_and_after_each_request_was_carried_out(
    job, proxy, prefix, direction, action
):
    async with running(job.config, job.agent) as group, asyncio.timeout(PATIENCE):
        for api in [*REQUESTS, Api.END_TXN]:
            fault = proxy.add(Fault(action, {api}, direction, f"{prefix}count.0", limit=1))
            if api is Api.INIT_PRODUCER_ID:
                await fault.wait_for()
        await job.finish(group)
    await job.check_exact()
