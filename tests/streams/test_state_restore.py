"""Restoring: only the tail after the stored offset, or everything, or a clear refusal."""

import logging
import shutil

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer

from streams.engine import AgentSpec
from streams.engine.changelogs.changelog import META_KEY, Changelogs
from streams.engine.changelogs.restore import restore
from streams.engine.state import CountsTable, EntriesTable
from streams.engine.state.store import Store
from streams.engine.tasks.task import Phase
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


async def prepare(address, prefix, folder):
    conf, agent = config(address, prefix, folder), spec(prefix)
    await create_topics(address, conf, [agent], prefix + "out")
    await produce(address, prefix + "in", ids(range(200)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 200))
    return conf, agent


async def test_only_the_tail_is_read(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "old")
    await produce(broker_address, prefix + "in", ids(range(1_000, 1_030)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 30))
    behind = config(broker_address, prefix, tmp_path / "old")
    async with running(behind, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        # 30 ids, the cells they fall into, and a positions record per transaction.
        assert 31 <= group.tasks["count", 0].session.restored.records <= 30 + 30 + 30
        assert len(group.tasks["count", 0].session._tables[1]) == 230


async def test_state_of_another_layout_is_refused_from_folder_and_changelog(
    broker_address, prefix, tmp_path
):
    _, agent = await prepare(broker_address, prefix, tmp_path / "a")
    wider = AgentSpec(
        "count",
        agent.inputs,
        lambda: [CountsTable("counts", 3), EntriesTable("seen")],
        agent.processor,
    )
    for folder in ("a", "empty"):
        moved = config(broker_address, prefix, tmp_path / folder)
        async with running(moved, wider) as group:
            await until(lambda: group.statuses()[0].phase is Phase.FAILED)
            assert "counts:1:<i8" in group.statuses()[0].reason
            assert "counts:3:<i8" in group.statuses()[0].reason


async def test_positions_beyond_the_input_are_refused(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    async with AIOKafkaProducer(bootstrap_servers=broker_address) as producer:
        records = await _meta(broker_address, conf)
        forged = records.replace(b":200}", b":900}")
        assert forged != records
        await producer.send_and_wait(conf.changelog("count"), forged, META_KEY, partition=0)
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        assert "its end was lost" in group.statuses()[0].reason


@pytest.mark.parametrize(
    ("shared", "key", "value"),
    [(False, META_KEY, b"[]"), (False, b"\xff/patient", b"1"), (True, b"counts/short", b"1")],
)
async def test_a_changelog_written_by_another_program_stops_the_task_with_a_message(
    broker_address, prefix, tmp_path, shared, key, value
):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    topic = conf.shared_changelog("count") if shared else conf.changelog("count")
    async with AIOKafkaProducer(bootstrap_servers=broker_address) as producer:
        await producer.send_and_wait(topic, value, key, partition=0)
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        assert "another program has written to it" in group.statuses()[0].reason


async def _meta(address, conf):
    values = [
        r.value for r in await committed(address, conf.changelog("count")) if r.key == META_KEY
    ]
    return values[-1]


async def test_a_million_keys_are_restored_with_their_rate(
    broker_address, prefix, tmp_path, caplog
):
    total = 1_000_000
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    keys = np.arange(total)
    await _fill(broker_address, conf.changelog("count"), keys)
    tables = agent.tables()
    names = [table.name for table in tables]
    with Store(tmp_path / "0", names) as store, caplog.at_level(logging.INFO, "streams"):
        logs = Changelogs(tables, store, 0, conf.changelog("count"), conf.shared_changelog("count"))
        result = await restore(logs, conf, "test", ())
        assert result.records == total
        assert result.rate > 20_000
        tables[1].load(store)
        assert len(tables[1]) == total
        assert tables[1].get(b"%d" % (total - 1)) == b"v%d" % (total - 1)
        again = await restore(logs, conf, "test", ())
        assert again.records == 0
    assert f"restored {conf.changelog('count')}/0: {total} records, 100 %" in caplog.text


async def _fill(address, topic, keys):
    producer = AIOKafkaProducer(bootstrap_servers=address, max_batch_size=500_000)
    async with producer:
        batch = producer.create_batch()
        for key in keys.tolist():
            item = {"timestamp": None, "key": b"seen/%d" % key, "value": b"v%d" % key}
            if batch.append(**item) is None:
                await producer.send_batch(batch, topic, partition=0)
                batch = producer.create_batch()
                batch.append(**item)
        await (await producer.send_batch(batch, topic, partition=0))
