"""Batches through Faust: exactly once over rebalances, bounded memory, normal topics beside."""

import asyncio
import dataclasses
import itertools
import time
from collections import Counter

import orjson
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import KafkaTimeoutError

from streams.engine.tasks.task import Phase
from streams.faust import transport
from streams.faust.assignor import TogetherAssignor, spread
from streams.faust.transport import Consumer
from tests.streams.app_kit import worker
from tests.streams.engine_kit import (
    PATIENCE,
    Counting,
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    spec,
    until,
)

PARTS = 4


async def prepare(address, prefix, folder, per_partition, **changes):
    conf, agent = config(address, prefix, folder, session_timeout=6.0, **changes), spec(prefix)
    await create_topics(address, conf, [agent], prefix + "out", prefix + "plain", partitions=PARTS)
    for number in range(PARTS):
        await produce(address, prefix + "in", ids(range(per_partition)), number)
    return conf, agent


async def outputs(address, prefix):
    records = await committed(address, prefix + "out")
    return Counter((r.partition, orjson.loads(r.value)["id"]) for r in records)


def once(per_partition):
    return Counter((number, n) for number in range(PARTS) for n in range(per_partition))


async def test_agents_get_batches_and_commit_exactly_once(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 5_000)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 5_000))
    assert await outputs(broker_address, prefix) == once(5_000)


async def test_a_long_opening_costs_no_membership(broker_address, prefix, tmp_path):
    """A large state takes long to load; the group's heartbeats do not wait for it."""
    conf, agent = await prepare(broker_address, prefix, tmp_path, 10)

    def slowly(context):
        time.sleep(8)
        return agent.processor(context)

    short = dataclasses.replace(conf, session_timeout=6.0)
    async with worker(short, dataclasses.replace(agent, processor=slowly)) as app:
        await until(lambda: done(app.engine, PARTS * 10))
        assert app.consumer_generation_id == 1
        assert {status.reopenings for status in app.engine.statuses()} == {0}
    assert await outputs(broker_address, prefix) == once(10)


async def test_workers_come_and_go_while_busy(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 0, max_records=50)
    fed, enough = 0, asyncio.Event()

    async def feed():
        nonlocal fed
        while not enough.is_set():
            for number in range(PARTS):
                await produce(broker_address, prefix + "in", ids(range(fed, fed + 200)), number)
            fed += 200

    async with worker(conf, agent) as first:
        feeding = asyncio.create_task(feed())
        await until(lambda: done(first.engine, 500))
        async with worker(conf, agent) as second:
            await until(lambda: len(second.engine.tasks) == PARTS // 2)
            await until(lambda: done(second.engine, 500))
            assert len(first.engine.tasks) == PARTS // 2
        await until(lambda: running_tasks(first.engine) == PARTS)
        before = total(first)
        await until(lambda: total(first) > before + 500)
        enough.set()
        await feeding
        ends = Counter(r.partition for r in await committed(broker_address, prefix + "in"))
        await until(lambda: done_at(first.engine, prefix, ends))
    assert await outputs(broker_address, prefix) == Counter(
        (number, n) for number, end in ends.items() for n in range(end)
    )


def done_at(engine, prefix, ends):
    return {s.partition: s.positions.get(prefix + "in") for s in engine.statuses()} == ends


async def test_a_clean_stop_hands_over_at_once(broker_address, prefix, tmp_path):
    """A worker that did not leave would be waited for until its session times out."""
    base, agent = await prepare(broker_address, prefix, tmp_path, 10)
    conf = dataclasses.replace(base, session_timeout=10 * PATIENCE)
    async with worker(conf, agent) as first:
        async with worker(conf, agent) as second:
            await until(lambda: len(second.engine.tasks) == PARTS // 2)
            await until(lambda: done(first.engine, 1) or done(second.engine, 1))
        await until(lambda: running_tasks(first.engine) == PARTS)


def running_tasks(engine):
    return sum(status.phase is Phase.RUNNING for status in engine.statuses())


async def test_memory_is_bounded_however_large_the_backlog(broker_address, prefix, tmp_path):
    conf, agent = await prepare(
        broker_address, prefix, tmp_path, 40_000, backlog_bytes=50_000, fetch_bytes=50_000
    )
    sizes = []

    class Slow(Counting):
        def process(self, batch, out):
            sizes.append(len(batch))
            super().process(batch, out)

    slow = dataclasses.replace(agent, processor=lambda context: Slow(context, prefix + "out"))
    async with worker(conf, slow) as app:
        await until(lambda: running_tasks(app.engine) == PARTS)
        sessions = [task.session for task in app.engine.tasks.values()]
        largest = 0
        while not done(app.engine, PARTS * 40_000):
            held = max(session._inbox.nbytes for session in sessions)
            largest = max(largest, held)
            await asyncio.sleep(0.002)
    # The limit, and the one batch that was under way when it was reached.
    assert 0 < largest <= 2 * 50_000 + 200_000
    assert sum(sizes) == PARTS * 40_000
    assert await outputs(broker_address, prefix) == once(40_000)


async def test_a_batch_that_never_reaches_its_agent_is_read_again(
    broker_address, prefix, tmp_path, monkeypatch
):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    deliver, dropped = Consumer.deliver, []

    async def drop_the_first(self, batch):
        if batch.partition in dropped:
            await deliver(self, batch)
        else:
            dropped.append(batch.partition)

    monkeypatch.setattr(Consumer, "deliver", drop_the_first)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 100))
    assert sorted(dropped) == list(range(PARTS))
    assert await outputs(broker_address, prefix) == once(100)


async def test_a_batch_that_begins_too_early_is_cut(broker_address, prefix, tmp_path):
    """A seek that went elsewhere must not make records skipped or seen twice."""
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 100))
        await produce(broker_address, prefix + "in", ids(range(100, 150)), 0)
        app.consumer._thread.seek_all({(prefix + "in", 0): 40})
        await until(lambda: done(app.engine, PARTS * 100 + 50))
    counts = await outputs(broker_address, prefix)
    assert counts == once(100) + Counter((0, n) for n in range(100, 150))


async def test_what_was_fetched_and_went_nowhere_is_fetched_again(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 100))
        thread = app.consumer._thread
        thread.seek_all({(prefix + "in", 0): 0})
        await until(lambda: thread.position_of((prefix + "in", 0)) == 100)
        task = app.engine.tasks["count", 0]
        # As if a batch had been taken for it and lost: the task stands before where the thread is.
        task.session.positions[prefix + "in"] = 60
        task.session.pause()
        task.session.resume()
        await until(lambda: done(app.engine, PARTS * 100 + 40))
    counts = await outputs(broker_address, prefix)
    assert counts == once(100) + Counter((0, n) for n in range(60, 100))


async def test_a_gap_is_found_while_others_flow_and_the_broker_does_not_answer_at_once(
    broker_address, prefix, tmp_path, monkeypatch
):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    topic, later = prefix + "in", itertools.count(100)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 100))
        thread, task = app.consumer._thread, app.engine.tasks["count", 0]
        earliest, asked = thread.earliest_offsets, []

        async def no_answer_at_first(*partitions):
            asked.append(partitions)
            if len(asked) == 1:
                raise KafkaTimeoutError
            return await earliest(*partitions)

        monkeypatch.setattr(thread, "earliest_offsets", no_answer_at_first)
        task.session.positions[topic] = 60
        task.session.pause()
        task.session.resume()
        async with asyncio.timeout(PATIENCE):
            while task.session.positions[topic] != 100 or len(asked) < 2:
                await produce(broker_address, topic, ids([next(later)]), 1)
        sent = next(later)
        await until(lambda: done(app.engine, PARTS * 100 + 40 + sent - 100))
    counts = await outputs(broker_address, prefix)
    again = Counter((0, n) for n in range(60, 100))
    assert counts == once(100) + again + Counter((1, n) for n in range(100, sent))


async def test_nobody_seeks_what_was_taken_away(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 10)
    async with worker(conf, agent) as app:
        app.consumer._thread.seek_all({(prefix + "in", PARTS): 5, (prefix + "gone", 0): 5})
        await until(lambda: done(app.engine, PARTS * 10))
    assert await outputs(broker_address, prefix) == once(10)


async def remove_records(address, topic, partition, before):
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.delete_records({TopicPartition(topic, partition): RecordsToDelete(before)})
    await admin.close()


async def test_what_retention_removed_before_it_was_read_is_reported_and_skipped(
    broker_address, prefix, tmp_path, caplog
):
    """Before the first open, between two opens, and while the worker runs."""
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    topic = prefix + "in"
    await remove_records(broker_address, topic, 0, 30)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 100 - 30))
    assert "were removed" not in caplog.text
    await produce(broker_address, topic, ids(range(100, 200)), 0)
    await remove_records(broker_address, topic, 0, 150)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, 50))
        assert f"{topic}/0: records 100 to 149 were removed" in caplog.text
        app.consumer._thread.seek_all({(topic, 0): 0})
        await produce(broker_address, topic, ids(range(200, 300)), 0)
        await until(lambda: done(app.engine, 150))
    received = Counter((0, n) for n in [*range(30, 100), *range(150, 300)])
    elsewhere = Counter((p, n) for p in range(1, PARTS) for n in range(100))
    assert await outputs(broker_address, prefix) == received + elsewhere


async def test_normal_topics_work_beside(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 100)
    got = []

    def setup(app):
        topic = app.topic(prefix + "plain", value_type=bytes, value_serializer="raw")

        @app.agent(topic)
        async def plain(stream):
            async for event in stream.events():
                got.append((event.message.partition, event.value))  # noqa: PERF401  # it never ends

    await produce(broker_address, prefix + "plain", [b"a", b"b"], 1)
    async with worker(conf, agent, setup=setup) as app:
        await until(lambda: len(got) == 2)
        await app.topic(prefix + "plain").send(key=b"k", value=b"c", partition=2)
        await until(lambda: len(got) == 3)
        await until(lambda: done(app.engine, PARTS * 100))
        await app.consumer.commit()
    assert got == [(1, b"a"), (1, b"b"), (2, b"c")]
    # Faust acknowledged the normal topic: a second worker does not get it again.
    got.clear()
    async with worker(conf, agent, setup=setup) as app:
        await produce(broker_address, prefix + "plain", [b"d"], 3)
        await until(lambda: got)
    assert got == [(3, b"d")]
    assert await outputs(broker_address, prefix) == once(100)


async def test_uncommitted_input_is_not_seen(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 0)
    async with worker(conf, agent) as app:
        await until(lambda: running_tasks(app.engine) == PARTS)
        producer = AIOKafkaProducer(bootstrap_servers=broker_address, transactional_id=prefix)
        async with producer:
            for value, keep in ((b'{"id":1}', False), (b'{"id":2}', True), (b'{"id":3}', False)):
                await producer.begin_transaction()
                await producer.send_and_wait(prefix + "in", value, partition=0)
                await (producer.commit_transaction() if keep else producer.abort_transaction())
        await until(lambda: done(app.engine, 1))
        # Aborted records and markers are passed, so that nothing looks like lag.
        session = app.engine.tasks["count", 0].session
        await until(lambda: session.positions[prefix + "in"] == 6)
    assert await outputs(broker_address, prefix) == Counter({(0, 2): 1})


async def test_the_groups_offsets_show_the_lag(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, 50)
    async with worker(conf, agent) as app:
        await until(lambda: done(app.engine, PARTS * 50))
    shown = await group_offsets(broker_address, conf)
    assert shown == {TopicPartition(prefix + "in", n): 50 for n in range(PARTS)}


async def group_offsets(address, conf):
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    offsets = await admin.list_consumer_group_offsets(conf.app)
    await admin.close()
    return {tp: entry.offset for tp, entry in offsets.items()}


async def test_no_offsets_are_shown_while_the_group_rebalances(
    broker_address, prefix, tmp_path, monkeypatch
):
    """They would wait behind the joining, come too late, and cost the worker its place."""
    monkeypatch.setattr(transport, "_SHOW_EVERY", 0.1)
    conf, agent = await prepare(broker_address, prefix, tmp_path, 50)

    async def shown():
        return set((await group_offsets(broker_address, conf)).values())

    async def until_shown(offset):
        async with asyncio.timeout(PATIENCE):
            while await shown() != {offset}:  # noqa: ASYNC110 - on the broker
                await asyncio.sleep(0.1)

    async with worker(conf, agent) as app:
        await until_shown(50)
        app.engine.still_since = time.monotonic()
        for number in range(PARTS):
            await produce(broker_address, prefix + "in", ids(range(10)), number)
        await until(lambda: done(app.engine, PARTS * 60))
        await asyncio.sleep(0.5)
        assert await shown() == {50}
        app.engine.still_since = None
        await until_shown(60)


async def test_inputs_of_one_agent_stay_together(broker_address, prefix, tmp_path):
    conf = config(broker_address, prefix, tmp_path, session_timeout=6.0)
    agent = spec(prefix, inputs=("a", "b", "c"))
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=PARTS)
    async with worker(conf, agent) as first, worker(conf, agent) as second:
        await until(
            lambda: running_tasks(first.engine) == running_tasks(second.engine) == PARTS // 2
        )
        for number in range(PARTS):
            for topic in ("a", "b", "c"):
                await produce(broker_address, prefix + topic, ids([number]), number)
        await until(lambda: total(first, second) == 3 * PARTS)
    records = await committed(broker_address, prefix + "out")
    assert Counter((r.partition, orjson.loads(r.value)["before"]) for r in records) == Counter(
        (number, before) for number in range(PARTS) for before in range(3)
    )


def total(*apps):
    return sum(status.records for app in apps for status in app.engine.statuses())


@pytest.mark.parametrize("members", range(1, 6))
@pytest.mark.parametrize("partitions", [1, 2, 4, 7])
def test_a_spread_is_even_whoever_held_what(members, partitions):
    names = [f"m{n}" for n in range(members)]
    held = {name: [] for name in names}
    load = dict.fromkeys(names, 0)
    for gone in [*names[1:], None]:
        now = {name: mine for name, mine in held.items() if name != gone}
        shares = spread(list(range(partitions)), now, load)
        sizes = [len(mine) for mine in shares.values()]
        assert sorted(n for mine in shares.values() for n in mine) == list(range(partitions))
        assert max(sizes) - min(sizes) <= 1
        unmoved = sum(len(set(now[name]) & set(shares[name])) for name in now)
        assert unmoved == sum(min(len(now[name]), len(shares[name])) for name in now)
        held = {**{name: [] for name in names}, **shares}


def test_workers_of_different_roles_share_a_group():
    class Cluster:
        def partitions_for_topic(self, topic):
            return {0, 1}

    def member(*groups):
        assignor = TogetherAssignor(lambda: groups, dict)
        return assignor, assignor.metadata([topic for group in groups for topic in group])

    narrow, wide = member(("a", "b")), member(("a", "b"), ("c",))
    assignments = narrow[0].assign(Cluster(), {"one": narrow[1], "both": wide[1]})
    parts = {name: dict(assignment.assignment) for name, assignment in assignments.items()}
    assert parts["both"]["c"] == [0, 1]
    assert parts["one"]["a"] == parts["one"]["b"]
    assert sorted(parts["one"]["a"] + parts["both"]["a"]) == [0, 1]
