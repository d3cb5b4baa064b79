"""The only broker goes away while a worker runs; the worker recovers without a restart."""

import asyncio

import pytest
from mode import Service

from streams.broker.reaper import temporary_broker
from streams.engine.tasks.task import Phase
from streams.faust.app import WebConfig
from tests.streams.app_kit import worker
from tests.streams.engine_kit import (
    PATIENCE,
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    spec,
    until,
)

AWAY = 8.0


@pytest.mark.parametrize("way", ["kill", "stop"])
async def test_the_worker_waits_and_continues(way, prefix, tmp_path):
    with temporary_broker() as broker:
        conf, agent = config(broker.address, prefix, tmp_path, session_timeout=6.0), spec(prefix)
        await create_topics(broker.address, conf, [agent], prefix + "out", partitions=2)
        await produce(broker.address, prefix + "in", ids(range(1_000)))
        async with worker(conf, agent, web=WebConfig(port=0)) as app:
            await until(lambda: done(app.engine, 1_000))
            node = broker.nodes[0]
            await asyncio.to_thread(getattr(node, way))
            await asyncio.sleep(AWAY)
            await asyncio.to_thread(node.start)
            await produce(broker.address, prefix + "in", ids(range(1_000, 2_000)))
            await until(lambda: done(app.engine, 2_000))
            await until(lambda: all(s.phase is Phase.RUNNING for s in app.engine.statuses()))
            assert not app.should_stop
        outputs = await committed(broker.address, prefix + "out")
        assert [r.key for r in outputs if r.partition == 0] == [b"%d" % n for n in range(2_000)]


@pytest.mark.parametrize("way", ["kill", "pause"])
async def test_a_worker_stops_though_its_broker_is_gone(way, prefix, tmp_path, monkeypatch):
    """The worker's own time-outs end its waits; Faust's are out of reach here.

    A paused broker takes what it is sent and never answers.
    """
    monkeypatch.setattr(Service, "shutdown_timeout", 3600.0)
    with temporary_broker() as broker:
        conf, agent = config(broker.address, prefix, tmp_path, leave_timeout=1.0), spec(prefix)
        await create_topics(broker.address, conf, [agent], prefix + "out")
        await produce(broker.address, prefix + "in", ids(range(10)))
        async with asyncio.timeout(2 * PATIENCE), worker(conf, agent, web=WebConfig(port=0)) as app:
            await until(lambda: done(app.engine, 10))
            await asyncio.to_thread(getattr(broker.nodes[0], way))
