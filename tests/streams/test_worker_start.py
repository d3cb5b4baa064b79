"""A worker that starts while the network fails: it waits, and then runs."""

import asyncio
import logging

import pipeline_kit
from engine_kit import until

from agents.worker import Worker
from bench.faults.kafka_proxy import Action, Api, Direction, Fault, KafkaProxy


async def test_a_worker_that_gets_no_answer_while_it_checks_the_topics_asks_again(
    broker_address, prefix, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    async with KafkaProxy(broker_address) as proxy:
        name, hasty = prefix.strip("."), "broker.request_timeout=1s"
        await pipeline_kit.create_topics(pipeline_kit.settings(tmp_path, broker_address, name))
        settings = pipeline_kit.settings(tmp_path, proxy.address, name, hasty)
        lost = [
            proxy.add(Fault(Action.DROP, {api}, direction, limit=1))
            for api in (Api.LIST_OFFSETS, Api.METADATA)
            for direction in Direction
        ]
        apps = []
        worker = Worker(settings, prepare=apps.append)
        running = asyncio.create_task(worker.run())
        await until(lambda: running.done() or (apps and apps[0].engine.joined), 120)
        assert not running.done()
        assert all(fault.struck for fault in lost)
        host, port = apps[0].web.address
        await until(lambda: f"web pages at http://{host}:{port}" in caplog.messages, 60)
        worker.stop()
        await running
