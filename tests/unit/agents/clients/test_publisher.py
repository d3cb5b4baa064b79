"""Publishing at the same time: few requests, and each caller gets its own answer or error."""

import asyncio
from collections import Counter

import pytest
from aiokafka.errors import KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder

from agents.clients.client import Publisher, _Patient
from agents.clients.coalescing import MOST, Coalescer
from agents.clients.splitting import PatientError
from settings.errors import BrokerError
from streams.kafka.partitions import partition_of
from tests.unit.agents.toy import SETTINGS

PATIENT = {"age": 41, "sex": "m", "dose": 0.5}
PARTITIONS = SETTINGS.topics.partitions


class Broker:
    """Takes batches one loop turn later, except those of the partitions that are to fail."""

    def __init__(self):
        self.requests, self.records, self.failing = 0, Counter(), set()

    def create_batch(self):
        return BatchBuilder(256 << 10, 0)

    async def send_batch(self, batch, topic, *, partition):
        self.requests += 1
        self.records[topic] += batch.record_count()
        future = asyncio.get_running_loop().create_future()
        outcome = KafkaTimeoutError() if partition in self.failing else None
        set_it = future.set_result if outcome is None else future.set_exception
        asyncio.get_running_loop().call_soon(set_it, outcome)
        return future


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def publisher(broker):
    opened = Publisher(SETTINGS)
    opened._sender._producer, opened._open = broker, True
    return opened


async def test_a_thousand_at_once_are_a_few_requests(broker, publisher):
    ids = await asyncio.gather(*(publisher.publish(PATIENT) for _ in range(1000)))
    assert len(set(ids)) == 1000
    assert set(broker.records.values()) == {1000}
    assert broker.requests == PARTITIONS * len(broker.records)


async def test_calls_during_a_request_share_the_next_one(broker, publisher):
    async def several():
        for _ in range(5):
            await publisher.publish(PATIENT)

    await asyncio.gather(*(several() for _ in range(200)))
    assert set(broker.records.values()) == {1000}
    assert broker.requests <= 6 * PARTITIONS * len(broker.records)


async def test_a_patient_who_cannot_be_published_spoils_it_for_nobody(broker, publisher):
    patients = [PATIENT, PATIENT | {"age": "old"}, PATIENT, {"colour": 3}]
    said = await asyncio.gather(*map(publisher.publish, patients), return_exceptions=True)
    assert [type(each).__name__ for each in said] == [
        "Published", "PatientError", "Published", "PatientError",
    ]  # fmt: skip
    assert "feature 'age'" in str(said[1])
    assert set(broker.records.values()) == {2}


async def test_a_partition_that_fails_fails_only_its_own(broker, publisher):
    broker.failing = {0}
    calls = [publisher._asked.answer(_patient(f"p{k}")) for k in range(50)]
    said = await asyncio.gather(*calls, return_exceptions=True)
    for number, outcome in enumerate(said):
        lost = partition_of(f"p{number}".encode(), PARTITIONS) == 0
        assert isinstance(outcome, BrokerError) if lost else outcome == 0


def _patient(name):
    return _Patient(name, False, PATIENT, None, ())


async def test_who_is_cancelled_in_time_is_not_published(broker, publisher):
    calls = [asyncio.create_task(publisher.publish(PATIENT)) for _ in range(10)]
    await asyncio.sleep(0)
    calls[3].cancel()
    await asyncio.wait(calls)
    assert set(broker.records.values()) == {9}
    assert sum(not call.cancelled() for call in calls) == 9


async def test_an_error_of_all_reaches_everybody_and_the_next_call_works():
    sizes = []

    async def together(items):
        sizes.append(len(items))
        if len(sizes) == 1:
            raise PatientError("no")
        return [2 * item for item in items]

    asked = Coalescer(together)
    first = await asyncio.gather(*(asked.answer(k) for k in range(3)), return_exceptions=True)
    assert [str(error) for error in first] == ["no"] * 3
    assert await asyncio.gather(*(asked.answer(k) for k in range(MOST + 1))) == [
        2 * k for k in range(MOST + 1)
    ]
    await asked.finish()
    assert sizes == [3, MOST, 1]
