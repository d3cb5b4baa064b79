"""State knows whose it is, which topics it is about, and when it was written."""

import asyncio
import dataclasses
import logging
import shutil

import orjson
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from settings.errors import BrokerError
from streams.clock import wall
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.state import Store
from streams.engine.tasks.task import Phase
from streams.kafka.client.topic_facts import topic_ids
from tests.streams.engine_kit import (
    PATIENCE,
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

DAY = 86_400_000


async def prepare(address, prefix, folder, records=100):
    conf, agent = config(address, prefix, folder), spec(prefix)
    await create_topics(address, conf, [agent], prefix + "out")
    await produce(address, prefix + "in", ids(range(records)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, records))
    return conf, agent


async def recreate(address, topic):
    """Delete a topic, create one of the same name, and wait until brokers tell the two apart."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        before = await topic_ids(admin, [topic])
        await admin.delete_topics([topic])
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await admin.create_topics(
                    [NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})]
                )
                if all(not code for _, code, *_ in answer.topic_errors):
                    break
                await asyncio.sleep(0.05)  # the old one is not gone yet
            while not await known_again(admin, topic, before):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # a broker hears of it after its controller
    finally:
        await admin.close()


async def known_again(admin, topic, before):
    try:
        return await topic_ids(admin, [topic]) != before
    except BrokerError:  # neither the old one nor the new one
        return False


async def refusal(conf, agent):
    """Return why a task is refused."""
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        return group.statuses()[0].reason


def content(folder):
    with Store(folder, ["counts", "seen"]) as store:
        return dict(store.items("seen")), store.offsets, store.positions


async def test_a_recreated_changelog_is_refused_and_the_folder_stays(
    broker_address, prefix, tmp_path
):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    folder = conf.state_folder("count", 0) / "0"
    before = content(folder)
    assert len(before[0]) == 100
    await recreate(broker_address, conf.changelog("count"))
    reason = await refusal(conf, agent)
    assert f"the changelog {conf.changelog('count')} was recreated" in reason
    assert "move the state folder away" in reason
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["0"]
    assert len(await committed(broker_address, prefix + "out")) == 100
    # Without the folder, the shared rows tell.
    shutil.move(folder, tmp_path / "elsewhere")
    assert "it was recreated" in await refusal(conf, agent)


async def test_a_recreated_shared_changelog_or_input_is_refused(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path / "a")
    bare = config(broker_address, prefix, tmp_path / "empty")
    for topic in (prefix + "in", conf.shared_changelog("count")):
        await recreate(broker_address, topic)
        await produce(broker_address, prefix + "in", ids(range(5_000, 5_200)))
        for settings in (conf, bare):
            reason = await refusal(settings, agent)
            assert f"{topic} was recreated" in reason
            assert "topics.prefix" in reason
        shutil.rmtree(tmp_path / "empty")
    assert len(await committed(broker_address, prefix + "out")) == 100


async def test_an_input_recreated_under_a_running_task_stops_it(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    watchful = dataclasses.replace(conf, topics_every=0.1)
    async with running(watchful, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        await recreate(broker_address, prefix + "in")
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        assert f"{prefix}in was recreated" in group.statuses()[0].reason
        assert "up to 100" in group.statuses()[0].reason
    assert len(await committed(broker_address, prefix + "out")) == 100


async def test_a_changelog_that_lost_its_end_or_its_beginning_is_refused(
    broker_address, prefix, tmp_path
):
    conf, agent = await prepare(broker_address, prefix, tmp_path / "a")
    folder = conf.state_folder("count", 0) / "0"
    with Store(folder, ["counts", "seen"]) as store:
        far = {**store.offsets, conf.changelog("count"): 10**9}
        store.write({}, offsets=far, positions=store.positions, layout=store.layout)
    before = content(folder)
    assert "the broker lost records" in await refusal(conf, agent)
    assert content(folder) == before
    admin = AIOKafkaAdminClient(bootstrap_servers=broker_address)
    await admin.start()
    place = TopicPartition(conf.changelog("count"), 0)
    # Kafka deletes no single records of a topic that is only compacted; hands that change that do.
    await alter(broker_address, conf.changelog("count"), {"cleanup.policy": "compact,delete"})
    await admin.delete_records({place: RecordsToDelete(before_offset=50)})
    await admin.close()
    bare = config(broker_address, prefix, tmp_path / "empty")
    assert "records were deleted that the state needs" in await refusal(bare, agent)


async def test_a_folder_older_than_the_tombstones_is_set_aside(
    broker_address, prefix, tmp_path, caplog
):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    folder = conf.state_folder("count", 0) / "0"
    for horizon, age, replaced in ((DAY, 0.95 * DAY, True), (10 * DAY, 8 * DAY, False)):
        for topic in (conf.changelog("count"), conf.shared_changelog("count")):
            wanted = {"cleanup.policy": "compact", "delete.retention.ms": str(horizon)}
            await alter(broker_address, topic, wanted)
        age_folder(folder, age)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "streams"):
            async with running(conf, agent) as group:
                await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
                session = group.tasks["count", 0].session
                assert (b"returned" in session._tables[1]) is not replaced
                assert len(session._tables[1]) == 100 + (not replaced)
        assert ("all of the state is restored" in caplog.text) is replaced
    assert len(list(folder.parent.glob("0.old-*"))) == 1


def age_folder(folder, age):
    """Make a folder look as if written so long ago, with a row that was deleted since."""
    with Store(folder, ["counts", "seen"]) as store:
        store.write(
            {"seen": [(b"returned", b"1")]},
            offsets=store.offsets,
            positions=store.positions,
            layout=store.layout,
        )
        store._db.put(b"written", orjson.dumps({"at": wall() - int(age)}))


async def alter(address, topic, wanted):
    """Change the settings of a topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    (answer,) = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, wanted)])
    await admin.close()
    assert [error for error, *_ in answer.resources] == [0]


async def test_state_of_another_ensemble_or_of_other_settings_is_refused(
    broker_address, prefix, tmp_path
):
    """Both from the folder and, on another machine, from the changelog."""
    conf, plain = config(broker_address, prefix, tmp_path / "a"), spec(prefix)
    agent = dataclasses.replace(plain, meaning={"labels": "one", "learners.a.cuts": "two"})
    await create_topics(broker_address, conf, [agent], prefix + "out")
    # State without a word on its meaning, as earlier versions wrote it, adopts what it meets.
    for variant, records in ((plain, 50), (agent, 100)):
        await produce(broker_address, prefix + "in", ids(range(50)))
        async with running(conf, variant) as group:
            await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
            await until(lambda group=group: done(group, 50))
        assert len(await committed(broker_address, prefix + "out")) == records
    contradicting = dataclasses.replace(
        plain, meaning={"labels": "one", "learners.a.cuts": "three"}
    )
    for folder in ("a", "empty"):
        here = dataclasses.replace(conf, state=tmp_path / folder)
        reason = await refusal(here, contradicting)
        assert "learners.a.cuts changed" in reason
        assert "labels" not in reason
        reason = await refusal(dataclasses.replace(here, app="rival"), agent)
        assert f"belongs to the ensemble {conf.app}, and these settings are called rival" in reason
    # A setting that was not stored before is no contradiction.
    extended = dataclasses.replace(plain, meaning={**agent.meaning, "ensemble.fnr_control": "new"})
    async with running(conf, extended) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)


async def test_a_new_task_signs_its_changelog_before_any_record(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].commits == 1)
    (record,) = await committed(broker_address, conf.changelog("count"))
    assert record.key == META_KEY
    origin = orjson.loads(record.value)["origin"]
    assert origin["owner"] == conf.app
    topics = {prefix + "in", conf.changelog("count"), conf.shared_changelog("count")}
    assert origin["topics"].keys() == topics
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        assert group.tasks["count", 0].session._changelogs.signed
        assert group.statuses()[0].commits == 0


async def test_a_folder_of_another_prefix_is_left_alone(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path)
    neighbour = f"{prefix}b."
    theirs = spec(neighbour)
    second = config(broker_address, neighbour, tmp_path)
    await create_topics(broker_address, second, [theirs], neighbour + "out")
    async with running(second, theirs) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        session = group.tasks["count", 0].session
        assert len(session._tables[1]) == 0
        assert session._store.folder.name == "1"
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        assert group.tasks["count", 0].session._store.folder.name == "0"
        assert len(group.tasks["count", 0].session._tables[1]) == 100
