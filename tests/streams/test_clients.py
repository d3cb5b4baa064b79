"""Clients for users' code: settings in, checked records out, only what is committed comes in."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer

from schemas.errors import RecordError
from schemas.records import Label
from settings.errors import BrokerError
from streams.clients import BlockingPublisher, BlockingSubscriber, Publisher, Subscriber
from streams.faust.app import engine_config
from tests.streams.engine_kit import create_topics
from tests.streams.settings_kit import settings


@pytest.fixture
async def made(broker_address, prefix, tmp_path):
    found = settings(prefix.rstrip("."), broker_address, state=tmp_path)
    await create_topics(broker_address, engine_config(found), [], prefix + "labels", partitions=3)
    return found


async def take(subscriber, number):
    messages = []
    async with asyncio.timeout(20):
        while len(messages) < number:
            messages += await subscriber.get_many(1.0)
    return messages


async def test_a_record_goes_in_and_comes_out(made):
    async with Publisher(made) as publisher, Subscriber(made, publisher.topics.labels) as labels:
        for number in range(20):
            await publisher.send(publisher.topics.labels, Label(f"p{number}", "benign", number))
        found = await take(labels, 20)
    assert sorted(message.key for message in found) == sorted(b"p%d" % n for n in range(20))
    assert {message.partition for message in found} == {0, 1, 2}
    one = next(message for message in found if message.key == b"p7")
    assert one.value == b'{"v":1,"id":"p7","label":"benign","at":7}'


async def test_one_patient_stays_in_one_partition(made):
    async with Publisher(made) as publisher, Subscriber(made, publisher.topics.labels) as labels:
        for _ in range(5):
            await publisher.send(publisher.topics.labels, b"{}", key="p1", headers=[("h", b"1")])
        found = await take(labels, 5)
    assert len({message.partition for message in found}) == 1
    assert found[0].headers == (("h", b"1"),)


async def test_what_is_not_committed_is_not_seen(made, broker_address, prefix):
    producer = AIOKafkaProducer(bootstrap_servers=broker_address, transactional_id=prefix)
    async with producer, Subscriber(made, prefix + "labels") as labels:
        for value, keep in ((b"aborted", False), (b"committed", True)):
            await producer.begin_transaction()
            await producer.send_and_wait(prefix + "labels", value, partition=0)
            await (producer.commit_transaction() if keep else producer.abort_transaction())
        assert [message.value for message in await take(labels, 1)] == [b"committed"]


async def test_only_what_is_new_if_asked(made):
    async with Publisher(made) as publisher:
        await publisher.send(publisher.topics.labels, b"old", key="a")
        async with Subscriber(made, publisher.topics.labels, new_only=True) as labels:
            await publisher.send(publisher.topics.labels, b"new", key="a")
            assert [message.value for message in await take(labels, 1)] == [b"new"]


async def test_a_group_goes_on_where_it_was(made, prefix):
    async with Publisher(made) as publisher:
        for value in (b"1", b"2"):
            await publisher.send(publisher.topics.labels, value, key="a")
            async with Subscriber(made, publisher.topics.labels, group=prefix + "g") as labels:
                assert [message.value for message in await take(labels, 1)] == [value]


async def test_iterating(made):
    async with Publisher(made) as publisher, Subscriber(made, publisher.topics.labels) as labels:
        await publisher.send(publisher.topics.labels, b"x", key="a")
        async for message in labels:
            assert message.value == b"x"
            break


def test_the_blocking_form(made):
    with BlockingPublisher(made) as publisher:
        publisher.send(publisher.topics.labels, Label("p", "malignant", 1))
        with BlockingSubscriber(made, publisher.topics.labels) as labels:
            assert next(iter(labels)).key == b"p"
            assert labels.get_many(0.1) == []


async def test_a_bad_record_does_not_leave(made):
    async with Publisher(made) as publisher:
        with pytest.raises(RecordError):
            await publisher.send(publisher.topics.labels, Label("", "benign", 1))
        with pytest.raises(ValueError, match="need a key"):
            await publisher.send(publisher.topics.labels, b"{}")


async def test_no_broker_is_one_sentence(monkeypatch):
    monkeypatch.setattr(Publisher, "patience", 0.5)
    nobody = settings(broker="127.0.0.1:1")
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1 within 0\.5 s"):
        async with Publisher(nobody):
            pass
