"""A stranger leaves a transaction open on an input: lag is 0, and yet it is told."""

from aiokafka import AIOKafkaProducer
from prometheus_client import CollectorRegistry

from streams.engine.tasks.task_metrics import observe
from tests.streams.app_kit import worker
from tests.streams.engine_kit import committed, config, create_topics, ids, produce, spec, until


def values(registry, name):
    found = {}
    for metric in registry.collect():
        found |= {sample.name: sample.value for sample in metric.samples}
    return found[name]


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
        await until(lambda: value("hb_held_back_seconds") > 0.5)
        await stranger.commit_transaction()
        await until(lambda: value("hb_held_back_records") == 0 == value("hb_held_back_seconds"))
        await until(lambda: value("hb_lag_records") == 0)
    keys = [record.key for record in await committed(broker_address, prefix + "out")]
    assert keys == [b"%d" % number for number in range(6)]
