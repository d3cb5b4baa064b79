"""Replicas: every partition sees the sum of all, whoever owns them, and no count twice."""

import asyncio
import dataclasses

import numpy as np
import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from streams.engine import Batch, EngineConfig
from streams.engine.changelogs.replica import Replica
from streams.engine.state import CountsTable, EntriesTable
from streams.engine.tasks.task import Phase
from streams.kafka.client.fetched import take_batches
from tests.streams.engine_kit import (
    CELLS,
    Counting,
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

ALL = np.arange(CELLS)


class Watching(Counting):
    """Remembers the view of the other partitions that it was given."""

    views: dict[int, object]

    def __init__(self, context, output, views):
        super().__init__(context, output)
        views[context.partition] = (context.tables["counts"], context.others)


def following(prefix, views):
    return dataclasses.replace(
        spec(prefix),
        processor=lambda context: Watching(context, prefix + "out", views),
        follow=True,
    )


def total(view):
    own, replica = view
    return (own.rows(ALL) + replica.rows("counts", ALL))[:, 0]


async def fill(address, prefix, partitions, records):
    for number in range(partitions):
        mine = [n for n in range(records) if n % partitions == number]
        await produce(address, prefix + "in", ids(mine), number)


async def test_all_partitions_see_the_same_sum_on_all_workers(broker_address, prefix, tmp_path):
    views, records = {}, 3_000
    agent, conf = following(prefix, views), config(broker_address, prefix, tmp_path)
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=3)
    await fill(broker_address, prefix, 3, records)
    expected = np.bincount(np.arange(records) % CELLS, minlength=CELLS)
    async with running(conf, agent, (0, 1)) as first, running(conf, agent, (2,)) as second:
        await until(lambda: done(first, 2_000) and done(second, 1_000))
        await until(lambda: all((total(view) == expected).all() for view in views.values()), 10)
        assert set(views) == {0, 1, 2}
        # A partition's own counts come from its own table only.
        own, replica = views[0]
        elsewhere = replica.rows("counts", ALL)[:, 0]
        assert (own.rows(ALL)[:, 0] + elsewhere == expected).all()
        assert elsewhere.sum() == 2_000


async def test_the_sum_is_complete_before_a_task_opens_and_after_it_moves(
    broker_address, prefix, tmp_path
):
    views, records = {}, 1_000
    agent, conf = following(prefix, views), config(broker_address, prefix, tmp_path)
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=2)
    await fill(broker_address, prefix, 2, records)
    async with running(conf, agent, (0, 1)) as group:
        await until(lambda: done(group, records))
    expected = np.bincount(np.arange(records) % CELLS, minlength=CELLS)
    for partition in (0, 1):
        views.clear()
        async with running(conf, agent, (partition,)) as group:
            await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
            assert (total(views[partition]) == expected).all()


def make_replica():
    conf = EngineConfig("app", "app.", {}, None, "dead")  # type: ignore[arg-type]
    tables = [CountsTable("counts", 2), EntriesTable("models", shared=True), EntriesTable("own")]
    return Replica(conf, "agent", tables)


def piece(partition, changes):
    keys, values = [key for key, _ in changes], [value for _, value in changes]
    number = len(changes)
    return Batch("t", partition, 0, number, number, [*range(number)], [0] * number, keys, values)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 99), st.integers(0, 99))),
        ),
        max_size=20,
    )
)
def test_the_total_is_the_sum_of_the_latest_rows(updates):
    replica, model = make_replica(), {}
    for partition, rows in updates:
        changes = [
            (b"counts/" + cell.to_bytes(8, "big"), np.array(row, np.int64).tobytes())
            for cell, row in rows.items()
        ]
        replica.apply(piece(partition, changes))
        model.update({(partition, cell): row for cell, row in rows.items()})
    cells = np.arange(10)
    for view in range(3):
        expected = np.zeros((10, 2), np.int64)
        for (partition, cell), row in model.items():
            expected[cell] += np.array(row) * (partition != view)
        assert (replica.others(view).rows("counts", cells) == expected).all()


def test_shared_entries_of_the_others_are_kept_by_partition():
    replica = make_replica()
    replica.apply(piece(0, [(b"models/m", b"1"), (b"own/x", b"?"), (b"models/gone", b"2")]))
    replica.apply(piece(1, [(b"models/m", b"3")]))
    before = replica.version
    replica.apply(piece(0, [(b"models/gone", None)]))
    assert replica.version > before
    assert replica.others(2).entries("models") == {0: {b"m": b"1"}, 1: {b"m": b"3"}}
    assert replica.others(0).entries("models") == {1: {b"m": b"3"}}


class Secretive(Watching):
    """Writes down the last id in a table that only its own agent may read."""

    def process(self, batch, out):
        super().process(batch, out)
        self.secrets.put(b"last", batch.values[-1])

    def __init__(self, context, output, views):
        super().__init__(context, output, views)
        self.secrets = context.tables["secrets"]


async def test_a_secret_table_travels_on_a_changelog_of_its_own(broker_address, prefix, tmp_path):
    views, conf = {}, config(broker_address, prefix, tmp_path)
    base = spec(prefix)
    agent = dataclasses.replace(
        base,
        tables=lambda: [*base.tables(), EntriesTable("secrets", secret=True)],
        processor=lambda context: Secretive(context, prefix + "out", views),
        follow=True,
    )
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=2)
    await fill(broker_address, prefix, 2, 100)

    def read():
        return len(views) == 2 and all(view[1].entries("secrets") for view in views.values())

    async with running(conf, agent, (0, 1)):
        await until(read)
        await until(lambda: views[0][1].entries("secrets")[1] == {b"last": b'{"id":99}'})
    for topic, secret in ((conf.secret_changelog("count"), True), (conf.changelog("count"), False)):
        keys = {record.key for record in await committed(broker_address, topic)}
        assert (b"secrets/last" in keys) == secret


@pytest.mark.parametrize("wrong", [{"dtype": np.float64}, {"initial": [1]}])
def test_only_what_adds_up_exactly_is_shared(wrong):
    with pytest.raises(ValueError, match="add up exactly"):
        CountsTable("counts", 1, **wrong)
    assert CountsTable("counts", 1, shared=False, **wrong).width == 1


async def test_a_replica_that_lost_its_place_or_met_an_error_follows_on(
    broker_address, prefix, tmp_path, monkeypatch
):
    conf, views = config(broker_address, prefix, tmp_path), {}
    agent = following(prefix, views)
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=2)
    await fill(broker_address, prefix, 2, 100)
    async with running(conf, agent, (0, 1)) as group:
        await until(lambda: done(group, 100))
        (replica,) = group._replicas.values()
        place = TopicPartition(conf.shared_changelog(agent.name), 0)
        failed = []

        def fail_once(*arguments):
            if not failed:
                failed.append(arguments)
                raise KafkaError
            return take_batches(*arguments)

        monkeypatch.setattr("streams.engine.changelogs.replica.take_batches", fail_once)
        beginning, asked = replica._consumer.beginning_offsets, []

        async def no_answer_at_first(places):
            asked.append(places)
            if len(asked) == 1:
                raise KafkaTimeoutError
            return await beginning(places)

        monkeypatch.setattr(replica._consumer, "beginning_offsets", no_answer_at_first)
        replica._consumer.seek(place, 10**6)
        await until(lambda: total(views[1]).sum() == 100)
        await fill(broker_address, prefix, 2, 50)
        await until(lambda: all(total(view).sum() == 150 for view in views.values()))
        assert failed
        assert len(asked) == 2


async def test_a_missing_shared_changelog_is_named(broker_address, prefix, tmp_path):
    replica = Replica(config(broker_address, prefix, tmp_path), "agent", [CountsTable("counts", 1)])
    with pytest.raises(Exception, match=r"agent\.shared does not exist"):
        await asyncio.wait_for(replica.start(), 120)
