"""A worker that is cut off from the group's coordinator, and from nothing else."""

import contextlib
from collections import Counter

import orjson
import pytest

from bench.faults.kafka_proxy import GROUP, Action, Fault, KafkaProxy
from streams.engine.observer import Observer
from streams.engine.tasks.task import SILENCE, Phase
from tests.streams.app_kit import worker
from tests.streams.engine_kit import committed, config, create_topics, ids, produce, spec, until

PARTITIONS = 4
RECORDS = 10
"""Records of each partition in one round."""
ROUNDS = 40
"""While one worker is cut off; without an answer from the coordinator both would open every second,
and each opening would fence the other worker."""


class Heard(Observer):
    """Counts what both workers commit, and the sessions that another producer has fenced."""

    records = fencings = 0

    def committed(self, commit):
        self.records += commit.records

    def interrupted(self, agent, partition, reason, final):
        self.fencings += "ProducerFenced" in reason


def held(app):
    """Return the partitions that a worker believes to hold."""
    return {number for _, number in app.engine.tasks}


async def feed(address, prefix):
    for partition in range(PARTITIONS):
        await produce(address, prefix + "in", ids(range(RECORDS)), partition)


async def check_answered_once(address, prefix, rounds):
    answers = Counter()
    for record in await committed(address, prefix + "out"):
        answer = orjson.loads(record.value)
        answers[record.partition, answer["id"], answer["before"]] += 1
    expected = {(p, n, r) for p in range(PARTITIONS) for n in range(RECORDS) for r in range(rounds)}
    assert answers == Counter(expected)


@pytest.fixture
async def two_workers(broker_address, prefix, tmp_path):
    """Two workers, each behind a proxy of its own."""
    agent, heard = spec(prefix), Heard()
    async with contextlib.AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(KafkaProxy(broker_address)) for _ in range(2)]
        configs = [
            config(
                proxy.address,
                prefix,
                tmp_path / str(number),
                session_timeout=2.0,
                heartbeat=0.2,
                request_timeout=3.0,
            )
            for number, proxy in enumerate(proxies)
        ]
        listen = lambda app: app.engine.observers.listeners.append(heard)  # noqa: E731
        topics = [agent], prefix + "out"
        await create_topics(broker_address, configs[0], *topics, partitions=PARTITIONS)
        workers = [
            await stack.enter_async_context(worker(conf, agent, setup=listen)) for conf in configs
        ]
        await until(lambda: [len(held(app)) for app in workers] == [PARTITIONS / 2] * 2)
        yield workers, proxies[0], heard


async def test_it_fences_nobody_and_gives_its_tasks_up(two_workers, broker_address, prefix):
    (cut_off, healthy), proxy, heard = two_workers
    lost = held(cut_off)
    await feed(broker_address, prefix)
    await until(lambda: heard.records == PARTITIONS * RECORDS)
    cut = proxy.add(Fault(Action.HOLD, GROUP))
    await until(lambda: len(held(healthy)) == PARTITIONS)
    for number in range(ROUNDS):
        await feed(broker_address, prefix)
        await until(lambda number=number: heard.records == PARTITIONS * RECORDS * (number + 2))
    await until(lambda: {s.reason for s in cut_off.engine.statuses()} == {SILENCE})
    # Each of its tasks was fenced at most once, by the new owner, and it fenced nobody.
    assert heard.fencings <= len(lost)
    assert {status.phase for status in cut_off.engine.statuses()} == {Phase.WAITING}
    assert any(SILENCE in sentence for sentence in cut_off.engine.trouble())
    cut.release()
    await until(lambda: len(held(cut_off)) == len(held(healthy)) == PARTITIONS / 2)
    await feed(broker_address, prefix)
    await until(lambda: heard.records == PARTITIONS * RECORDS * (ROUNDS + 2))
    assert heard.fencings <= len(lost)
    await check_answered_once(broker_address, prefix, ROUNDS + 2)
