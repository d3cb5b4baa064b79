"""Three brokers: copies of everything, and all works without one of them."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer

from streams.broker.reaper import temporary_broker
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create, find
from streams.kafka.topics import Topic

COPIES = {"min.insync.replicas": "2"}


@pytest.fixture(scope="module")
def three_brokers():
    """A cluster of three nodes; a test that kills one starts it again."""
    with temporary_broker(brokers=3) as cluster:
        yield cluster


@pytest.fixture
async def topic(three_brokers, prefix):
    name = f"{prefix}copied"
    async with admin_client(three_brokers.settings()) as admin:
        await create(admin, [Topic(name, 3, 3, COPIES)])
    return name


async def in_sync(cluster, topic):
    async with admin_client(cluster.settings()) as admin:
        listed = [
            description
            for description in await admin.describe_topics()
            if description["topic"] == topic
        ]
    return [len(part["isr"]) for description in listed for part in description["partitions"]]


async def write(cluster, topic, count):
    """Write to every partition, in transactions, which need the coordinators' topics too."""
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.address, transactional_id=topic, request_timeout_ms=20_000
    )
    async with producer:
        for _ in range(count):
            async with producer.transaction():
                for partition in range(3):
                    await producer.send_and_wait(topic, b"x", partition=partition)


async def all_in_sync_again(cluster, topic):
    deadline = time.monotonic() + 120
    while await in_sync(cluster, topic) != [3, 3, 3]:
        assert time.monotonic() < deadline, "the node did not catch up"
        await asyncio.sleep(0.2)


async def test_everything_has_three_copies(three_brokers, topic):
    await write(three_brokers, topic, 1)
    internal = "__transaction_state"
    async with admin_client(three_brokers.settings()) as admin:
        topics = await find(admin, [topic, internal])
    assert {entry.replication for entry in topics.values()} == {3}
    assert {entry.config["min.insync.replicas"] for entry in topics.values()} == {"2"}


async def look_often(cluster, topic):
    """Ask any broker for topics and their settings, so often that the one that is down is asked."""
    for _ in range(8):
        async with admin_client(cluster.settings()) as admin:
            assert topic in await find(admin, [topic])


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_writing_goes_on_while_a_node_is_gone(three_brokers, topic, end):
    await write(three_brokers, topic, 1)
    node = three_brokers.nodes[1]
    ended = getattr(node, end)()
    assert not node.alive
    assert ended in (None, True), "it did not stop cleanly"
    await look_often(three_brokers, topic)
    await write(three_brokers, topic, 2)
    node.start()
    await all_in_sync_again(three_brokers, topic)


async def test_starting_the_cluster_starts_what_is_missing(three_brokers, topic):
    pids = [three_brokers.nodes[number].process.find().pid for number in (1, 2)]
    three_brokers.nodes[0].kill()
    assert three_brokers.up() == three_brokers.address
    assert three_brokers.nodes[0].alive
    assert [three_brokers.nodes[number].process.find().pid for number in (1, 2)] == pids
    await all_in_sync_again(three_brokers, topic)


def test_a_frozen_node_is_alive_and_goes_on(three_brokers):
    node = three_brokers.nodes[2]
    node.pause()
    until_status(node, lambda status: status == "stopped")
    node.resume()
    until_status(node, lambda status: status != "stopped")


def until_status(node, holds):
    """Wait: a signal is sent at once, and acted on when the machine gets to it."""
    deadline = time.monotonic() + 120
    while not holds(status := node.process.find().status()):
        assert time.monotonic() < deadline, status
        time.sleep(0.01)
