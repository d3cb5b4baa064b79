"""A worker that is cut off from the group's coordinator, and from nothing else."""

import asyncio
import contextlib
from collections import Counter

import orjson

from tests.kits.kafka_proxy import GROUP, Action, Api, Fault, KafkaProxy
from tests.streams.app_kit import worker
from tests.streams.engine_kit import (
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    spec,
    until,
)

PARTITIONS = 4
ROUNDS = 8
"""Of records, while one worker is cut off."""


def held(app):
    return {number for _, number in app.engine.tasks}


async def feed(address, prefix, number):
    for partition in range(PARTITIONS):
        await produce(address, prefix + "in", ids(range(10)), partition)


async def test_a_worker_cut_off_from_the_coordinator_does_not_fence_the_next_owner(
    broker_address, prefix, tmp_path, caplog
):
    agent = spec(prefix)
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
                backoff=0.05,
            )
            for number, proxy in enumerate(proxies)
        ]
        await create_topics(
            broker_address, configs[0], [agent], prefix + "out", partitions=PARTITIONS
        )
        workers = [await stack.enter_async_context(worker(conf, agent)) for conf in configs]
        first, second = workers
        await until(lambda: len(held(first)) == len(held(second)) == PARTITIONS / 2)
        await feed(broker_address, prefix, 0)
        await until(lambda: done(first.engine, 20) and done(second.engine, 20))
        cut = proxies[0].add(Fault(Action.HOLD, GROUP))
        await until(lambda: len(held(second)) == PARTITIONS)
        caplog.clear()
        for number in range(60):
            await feed(broker_address, prefix, number)
            await asyncio.sleep(0.2)
        fenced = caplog.text.count("ProducerFenced")
        print("fenced", fenced)
        cut.release()
        await until(lambda: len(held(first)) == PARTITIONS / 2, 60)
        await feed(broker_address, prefix, ROUNDS)
    outputs = Counter(
        (record.partition, orjson.loads(record.value)["id"], orjson.loads(record.value)["before"])
        for record in await committed(broker_address, prefix + "out")
    )
    print(len(outputs), max(outputs.values()))
    assert fenced <= PARTITIONS
