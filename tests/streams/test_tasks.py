"""Tasks on a real broker and real RocksDB: nothing lost, nothing twice, bugs stop loudly."""

import asyncio
import contextlib
import dataclasses
import logging

import orjson
import pytest

from schemas.deadletters import from_message
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.observer import Observer
from streams.engine.state import CountsTable, EntriesTable, Store
from streams.engine.tasks.commit import Step
from streams.engine.tasks.task import Phase, Task
from tests.streams.engine_kit import (
    CELLS,
    PATIENCE,
    START,
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


async def prepare(address, prefix, folder, values, **changes):
    conf, agent = config(address, prefix, folder, **changes), spec(prefix)
    await create_topics(address, conf, [agent], prefix + "out")
    if values:
        await produce(address, prefix + "in", values)
    return conf, agent


def stored(conf, partition=0):
    """The tables as RocksDB has them after all tasks are closed."""
    tables = [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")]
    with Store(conf.state_folder("count", partition) / "0", [t.name for t in tables]) as store:
        for table in tables:
            table.load(store)
        counts = dict(zip(*[a.tolist() for a in tables[0].items()], strict=True))
        return {k: v[0] for k, v in counts.items()}, dict(tables[1].items()), store.positions


async def test_each_record_has_one_output_and_is_counted_once(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, ids(range(5_000)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 5_000))
    out = [orjson.loads(r.value) for r in await committed(broker_address, prefix + "out")]
    assert out == [{"id": n, "before": 0} for n in range(5_000)]
    counts, entries, positions = stored(conf)
    assert counts == dict.fromkeys(range(CELLS), 100)
    assert entries == {b"%d" % n: b"1" for n in range(5_000)}
    assert positions == {prefix + "in": 5_000}


async def test_outputs_keep_keys_and_event_times(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, ids([7, 8]))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 2))
    out = await committed(broker_address, prefix + "out")
    assert [(r.key, r.timestamp, r.partition) for r in out] == [
        (b"7", START, 0),
        (b"8", START + 1, 0),
    ]


async def test_transactions_grow_with_the_load_and_stay_bounded(broker_address, prefix, tmp_path):
    conf, agent = await prepare(
        broker_address, prefix, tmp_path, ids(range(20_000)), max_records=3_000, chunk_records=500
    )
    async with running(conf, agent) as group:
        await until(lambda: done(group, 20_000))
        commits = group.statuses()[0].commits
    assert 20_000 / 3_500 <= commits <= 40


async def test_a_reopened_task_continues_where_it_was(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path, ids(range(100)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 100))
    await produce(broker_address, prefix + "in", ids(range(100)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 100))
        assert group.tasks["count", 0].session.restored.records == 0
    out = [orjson.loads(r.value) for r in await committed(broker_address, prefix + "out")]
    assert out == [{"id": n, "before": b} for b in (0, 1) for n in range(100)]


async def test_a_lost_folder_is_restored_from_the_changelog(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path / "a", ids(range(1_000)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 1_000))
    before = stored(conf)
    elsewhere = config(broker_address, prefix, tmp_path / "b")
    async with running(elsewhere, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        assert group.tasks["count", 0].session.restored.records >= 1_000
    assert stored(elsewhere) == before


async def test_bad_records_become_dead_letters_in_the_same_transaction(
    broker_address, prefix, tmp_path
):
    values = [b'{"id":1}', b"not json", b'{"no":1}', None, b'{"id":2}']
    conf, agent = await prepare(broker_address, prefix, tmp_path, values)
    async with running(conf, agent) as group:
        await until(lambda: done(group, 5))
        assert group.statuses()[0].commits == 1
    out = [orjson.loads(r.value)["id"] for r in await committed(broker_address, prefix + "out")]
    dead = await committed(broker_address, prefix + "dead")
    assert out == [1, 2]
    assert [r.value for r in dead] == [b"not json", b'{"no":1}', None]
    letter = from_message(dead[1].headers, dead[1].key, dead[1].value)
    assert (letter.reason, letter.topic) == ("malformed", prefix + "in")
    assert (letter.partition, letter.offset, letter.key) == (0, 2, b"k2")
    assert dead[1].timestamp == letter.at, "retention counts from the refusal"


async def test_a_bug_stops_the_task_loudly_and_moves_nothing(
    broker_address, prefix, tmp_path, caplog
):
    values = [*ids(range(10)), b'{"id":-1}']
    conf, agent = await prepare(
        broker_address, prefix, tmp_path, values, retries=2, chunk_records=4, backoff=0.02
    )
    with caplog.at_level(logging.WARNING, "streams"):
        async with running(conf, agent) as group:
            await until(lambda: group.statuses()[0].phase is Phase.FAILED)
            status = group.statuses()[0]
            assert group.trouble()
    assert status.reopenings == 2
    assert "RuntimeError in agent count" in status.reason
    assert "process" in status.reason
    assert any("stops" in r.message for r in caplog.records)
    assert "-1" not in caplog.text.replace("positions", "")
    # What was committed before the bug stays; the record that meets the bug was never passed.
    out = [orjson.loads(r.value)["id"] for r in await committed(broker_address, prefix + "out")]
    assert out == list(range(len(out)))
    assert stored(conf)[2].get(prefix + "in", 0) == len(out) <= 10


async def test_a_new_owner_fences_the_old_one(broker_address, prefix, tmp_path):
    conf, agent = await prepare(broker_address, prefix, tmp_path / "a", ids(range(500)))
    held, go = asyncio.Event(), asyncio.Event()

    async def hold(step):
        if step is Step.DELIVERED and not held.is_set():
            held.set()
            await go.wait()

    async with running(conf, agent, hook=hold) as old:
        await asyncio.wait_for(held.wait(), PATIENCE)
        taker = config(broker_address, prefix, tmp_path / "b")
        async with running(taker, agent) as new:
            await until(lambda: done(new, 500))
            go.set()
            await until(lambda: old.statuses()[0].phase is Phase.WAITING)
            assert "Fenced" in old.statuses()[0].reason
            await old.close()
    out = [orjson.loads(r.value)["id"] for r in await committed(broker_address, prefix + "out")]
    assert out == list(range(500))


class Timed(Counting):
    """Sends a record when time passes."""

    def tick(self, now, out):
        if len(self.seen) and b"ticked" not in self.seen:
            self.seen.put(b"ticked", b"1")
            out.emit_many(self.output, [b"tick"], [None], [now])


async def test_time_passes_only_for_those_who_have_read_everything(
    broker_address, prefix, tmp_path
):
    conf, agent = await prepare(
        broker_address, prefix, tmp_path, ids(range(3_000)), max_records=100
    )
    timed = dataclasses.replace(agent, processor=lambda context: Timed(context, prefix + "out"))
    async with running(conf, timed) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        await until(lambda: b"ticked" in group.tasks["count", 0].session._tables[1])
    outputs = await committed(broker_address, prefix + "out")
    assert [r.key for r in outputs] == [*[b"%d" % n for n in range(3_000)], b"tick"]
    # What a tick changes is committed like everything else.
    assert stored(conf)[1][b"ticked"] == b"1"


async def test_observers_hear_of_what_is_certain(broker_address, prefix, tmp_path):
    values = [*ids(range(5)), b"bad", b'{"id":-1}']
    conf, agent = await prepare(
        broker_address, prefix, tmp_path, values[:6], retries=0, backoff=0.02
    )
    heard, changes = [], []

    class Ears(Observer):
        def opened(self, opened):
            rows = {name: list(rows()) for name, rows in opened.rows.items()}
            heard.append(("opened", opened.agent, opened.partition, opened.restored, rows))
            heard.append(dict(opened.at.positions))

        def committed(self, commit):
            heard.append(("committed", commit.records, commit.outputs, dict(commit.dead)))
            assert 0 < commit.seconds <= commit.waited
            changes.append(commit)

        def interrupted(self, agent, partition, reason, final):
            heard.append(("interrupted", final))

        def closed(self, agent, partition):
            heard.append(("closed", agent, partition))

    async with running(conf, agent, observer=Ears()) as group:
        await until(lambda: done(group, 6))
        await produce(broker_address, prefix + "in", values[6:])
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
    assert heard == [
        ("opened", "count", 0, 0, {"counts": [], "seen": []}),
        {prefix + "in": 0},
        ("committed", 6, 6, {"malformed": 1}),
        ("closed", "count", 0),
        ("interrupted", True),
    ]
    (change,) = changes
    assert change.at.positions == {prefix + "in": 6}
    assert {len(change.changes[name]) for name in ("counts", "seen")} == {5}
    ends = {topic: offset for topic, offset in change.at.offsets.items() if offset}
    assert ends == {conf.changelog("count"): 6, conf.shared_changelog("count"): 5}


async def test_several_inputs_of_one_task(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix, inputs=("a", "b"))
    await create_topics(broker_address, conf, [agent], prefix + "out", partitions=2)
    for number in range(2):
        for topic in ("a", "b"):
            await produce(broker_address, prefix + topic, ids(range(300)), number)
    async with running(conf, agent, (0, 1)) as group:
        await until(lambda: done(group, 1_200))
    out = await committed(broker_address, prefix + "out")
    for number in range(2):
        mine = [orjson.loads(r.value) for r in out if r.partition == number]
        assert sorted((d["id"], d["before"]) for d in mine) == [
            (n, b) for n in range(300) for b in (0, 1)
        ]
        assert stored(conf, number)[2] == {prefix + "a": 300, prefix + "b": 300}


async def test_partitions_without_all_inputs_are_refused(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix, inputs=("a", "b"))
    async with running(conf, agent, ()) as group:
        with pytest.raises(Exception, match="same number of partitions"):
            await group.assign([(prefix + "a", 0)])


async def test_a_missing_topic_is_named_and_found_later(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path, request_timeout=1.0), spec(prefix)
    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.WAITING)
        assert prefix in group.statuses()[0].reason
        await create_topics(broker_address, conf, [agent], prefix + "out")
        await produce(broker_address, prefix + "in", ids(range(10)))
        await until(lambda: done(group, 10))


async def test_a_task_ends_though_the_client_swallows_the_cancellation(
    broker_address, prefix, tmp_path
):
    """It did so while a restore closed its consumer, and the task ran on forever."""
    conf, agent = await prepare(broker_address, prefix, tmp_path, [])
    met = asyncio.Event()

    async def others():
        met.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)

    async with running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        task = Task(conf, agent, 0, group._source, others=others)
        task.start()
        await met.wait()
        async with asyncio.timeout(PATIENCE):
            await task.close()
        assert task.phase is Phase.CLOSED
        assert task.session is None


async def test_a_task_that_has_nothing_to_do_still_writes_to_its_changelog(
    broker_address, prefix, tmp_path
):
    """Kafka compacts nothing before something newer is written."""
    conf, agent = await prepare(broker_address, prefix, tmp_path, ids(range(5)), rewrite_every=0.2)

    def commits():
        return group.tasks["count", 0].session.commits

    async with running(conf, agent) as group:
        await until(lambda: done(group, 5))
        before = commits()
        await until(lambda: commits() > before + 2)
    keys = [record.key for record in await committed(broker_address, conf.changelog("count"))]
    assert keys[-3:] == [META_KEY] * 3
    assert stored(conf)[2] == {prefix + "in": 5}
