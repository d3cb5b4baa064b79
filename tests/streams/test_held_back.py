"""Another program leaves a transaction open on an input: lag is 0, and yet it is reported."""

import dataclasses

import pipeline_kit
from aiokafka import AIOKafkaProducer
from prometheus_client import CollectorRegistry

from agents.monitor.system_health import system_verdict
from agents.monitor.watch import look
from streams.engine.health import Cause
from streams.engine.tasks.task import Phase
from streams.engine.tasks.task_metrics import observe
from streams.kafka.topics import Topics
from tests.streams.app_kit import worker
from tests.streams.engine_kit import (
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    running,
    spec,
    until,
)


def values(registry, name):
    samples = {}
    for metric in registry.collect():
        samples |= {sample.name: sample.value for sample in metric.samples}
    return samples.get(name)


async def test_a_partition_behind_an_open_transaction_is_shown(broker_address, prefix, tmp_path):
    conf, agent, registry = (
        config(broker_address, prefix, tmp_path),
        spec(prefix),
        CollectorRegistry(),
    )
    await create_topics(broker_address, conf, [agent], prefix + "out")
    async with (
        worker(conf, agent, setup=lambda app: observe(registry, app.engine)),
        AIOKafkaProducer(
            bootstrap_servers=broker_address, transactional_id=prefix + "stranger"
        ) as stranger,
    ):
        await stranger.begin_transaction()
        await stranger.send_and_wait(prefix + "in", ids([0])[0], partition=0)
        await produce(broker_address, prefix + "in", ids(range(1, 6)))
        value = lambda name: values(registry, name)  # noqa: E731
        await until(lambda: value("hb_held_back_records") == 6)
        assert value("hb_lag_records") == 0
        await until(lambda: (value("hb_held_back_seconds") or 0) > 0.5)
        await stranger.commit_transaction()
        await until(lambda: value("hb_held_back_records") == 0 == value("hb_held_back_seconds"))
        await until(lambda: value("hb_lag_records") == 0)
    keys = [record.key for record in await committed(broker_address, prefix + "out")]
    assert keys == [b"%d" % number for number in range(6)]


async def test_state_is_not_read_from_a_changelog_that_a_stranger_holds_back(
    broker_address, prefix, tmp_path
):
    """Committed records behind the open transaction would be missing, and be answered again."""
    conf, agent = config(broker_address, prefix, tmp_path / "first"), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    async with AIOKafkaProducer(
        bootstrap_servers=broker_address, transactional_id=prefix + "stranger"
    ) as stranger:
        async with running(conf, agent) as group:
            await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
            await stranger.begin_transaction()
            await stranger.send_and_wait(conf.changelog("count"), b"", key=b"k", partition=0)
            await produce(broker_address, prefix + "in", ids(range(5)))
            await until(lambda: done(group, 5))
        for folder in ("first", "second"):  # as it was left, and restored from nothing
            again = dataclasses.replace(conf, state=tmp_path / folder)
            async with running(again, agent) as group:
                await until(lambda: "left a transaction open" in group.statuses()[0].reason)
                assert group.statuses()[0].phase is Phase.WAITING
        await stranger.abort_transaction()
    async with running(again, agent) as group:
        await produce(broker_address, prefix + "in", ids(range(5, 10)))
        await until(lambda: done(group, 5))
    keys = [record.key for record in await committed(broker_address, prefix + "out")]
    assert keys == [b"%d" % number for number in range(10)]


async def test_hb_status_names_the_partition(broker_address, prefix, tmp_path):
    settings = pipeline_kit.settings(tmp_path, broker_address, prefix.strip("."))
    await pipeline_kit.create_topics(settings)
    topic = Topics.of(settings).labels
    async with AIOKafkaProducer(
        bootstrap_servers=broker_address, transactional_id=prefix + "stranger"
    ) as stranger:
        await stranger.begin_transaction()
        await stranger.send_and_wait(topic, b"{}", key=b"p", partition=0)
        overview = await look(settings)
        assert [(held.topic, held.partition, held.records) for held in overview.held_back] == [
            (topic, 0, 1)
        ]
        symptoms = {symptom.cause: symptom.text for symptom in system_verdict(overview).symptoms}
        assert f"{topic}/0" in symptoms[Cause.HELD_BACK]
        await stranger.abort_transaction()
    assert (await look(settings)).held_back == ()
