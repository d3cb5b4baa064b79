"""Damaged state folders: noticed, kept under another name, and restored from the changelogs."""

import dataclasses
import logging
import random
import shutil
import subprocess
import sys
from collections import Counter

import orjson
import pytest

from bench.faults.disk import KINDS, damage
from streams.engine.state import CountsTable, EntriesTable
from streams.engine.state.store import DamagedError, Store, open_free
from streams.engine.tasks.task import Phase
from tests.streams.engine_kit import (
    CELLS,
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

ROUNDS = 40
NEEDED = {kind for kind in KINDS if kind.startswith("current")}
NEEDED |= {f"manifest {harm}" for harm in ("flipped", "emptied", "deleted")}
"""Without these no folder can be used. A table file may be obsolete, a log merely shorter."""


def changes(number):
    """Return one write: rows that come and go, and rows that every write changes."""
    draw = random.Random(number)
    rows = [
        (b"%05d" % draw.randrange(3_000), draw.randbytes(200) if draw.random() < 0.9 else None)
        for _ in range(150)
    ]
    return {"seen": rows, "counts": [(b"%d" % cell, b"%d" % number) for cell in range(20)]}


def fold(tables, first, final):
    """Apply writes to plain dictionaries."""
    for number in range(first, final + 1):
        for name, rows in changes(number).items():
            for key, value in rows:
                if value is None:
                    tables[name].pop(key, None)
                else:
                    tables[name][key] = value
    return tables


WRITER = """
import os, sys
from pathlib import Path
import streams.engine.state.store as store
from tests.streams.test_state_damage import ROUNDS, changes
options = store._options
def small(*cache):
    chosen = options(*cache)
    chosen.set_write_buffer_size(int(sys.argv[5]))
    return chosen
store._options = small
first, last, how = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
state = store.Store(Path(sys.argv[1]), ["seen", "counts"])
for number in range(first, last + 1):
    state.write(changes(number), offsets={"log": number}, positions={"in": number}, layout={})
if how == "killed":
    os._exit(0)
state.close()
"""


SMALL, LARGE = str(150 << 10), str(16 << 20)
"""What RocksDB collects before it writes a table file: with little, files come and go."""


@pytest.fixture(scope="module", params=[("killed", SMALL), ("closed", SMALL), ("killed", LARGE)])
def written(request, tmp_path_factory):
    """A folder of a worker that was killed, and one of a worker that ended; each came back."""
    how, buffer = request.param
    folder = tmp_path_factory.mktemp("written") / "0"
    for first, final in ((1, 15), (16, 30), (31, ROUNDS)):
        arguments = [str(folder), str(first), str(final), how, buffer]
        subprocess.run([sys.executable, "-c", WRITER, *arguments], check=True)
    return folder


def test_damage_is_never_read_as_state(written, tmp_path):
    """Whatever is done to a folder: what it says to hold, it holds, or it is set aside."""
    whole = fold({"seen": {}, "counts": {}}, 1, ROUNDS)
    met = Counter()
    for kind in KINDS:
        for seed in range(2):
            parent = tmp_path / f"{kind} {seed}"
            shutil.copytree(written, parent / "0")
            if damage(parent / "0", seed, kind) is None:
                continue
            tables, offset, aside = read_all(parent)
            assert fold(tables, offset + 1, ROUNDS) == whole, (kind, seed)
            if kind in NEEDED:
                assert aside, (kind, seed)
            assert all(any(folder.iterdir()) for folder in aside), (kind, seed)
            met[kind, bool(aside)] += 1
            shutil.rmtree(parent)
    assert sum(met[kind, True] for kind in KINDS) >= 15


def read_all(parent):
    """Open a task's folder as a task does, again if a scan finds damage; return what it holds."""
    for _ in range(2):
        with open_free(parent, ["seen", "counts"]) as store:
            try:
                tables = {name: dict(store.items(name)) for name in ("seen", "counts")}
                assert list(store.keys("seen")) == sorted(tables["seen"])
            except DamagedError:
                continue
            return tables, store.offsets.get("log", 0), list(parent.glob("0.damaged-*"))
    raise AssertionError("a new folder is damaged")


def test_a_damaged_block_is_not_taken_for_a_lock(written, tmp_path, caplog):
    """RocksDB says "block checksum mismatch"; that says nothing about who holds the folder."""
    shutil.copytree(written, tmp_path / "0")
    for table in (tmp_path / "0").glob("*.sst"):
        content = table.read_bytes()
        table.write_bytes(bytes(byte ^ 0xFF for byte in content[:100]) + content[100:])
    with caplog.at_level(logging.ERROR), open_free(tmp_path, ["seen", "counts"]) as store:
        assert store.folder.name == "0"
        assert store.offsets == {}
    assert "is damaged" in caplog.text
    assert "the state is being restored from the changelogs" in caplog.text


def test_a_read_that_meets_damage_sets_the_folder_aside(tmp_path):
    with Store(tmp_path / "0", ["t"]) as store:
        rows = [(b"%05d" % n, random.Random(n).randbytes(100)) for n in range(2_000)]
        store.write({"t": rows}, offsets={}, positions={}, layout={})
    assert damage(tmp_path / "0", 3, "data block flipped")
    keys = [key for key, _ in rows]
    reads = {
        "one": lambda store: [store.get("t", key) for key in keys],
        "many": lambda store: store.get_many("t", keys),
    }
    for name, read in reads.items():
        copy = tmp_path / name / "0"
        shutil.copytree(tmp_path / "0", copy)
        with Store(copy, ["t"]) as store, pytest.raises(DamagedError):
            read(store)
        assert not copy.exists()
        assert len(list(copy.parent.glob("0.damaged-*"))) == 1


async def test_a_task_goes_on_from_the_changelog_whatever_is_damaged(
    broker_address, prefix, tmp_path, caplog
):
    conf, agent = config(broker_address, prefix, tmp_path / "good"), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(3_000)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 3_000))
    count = 3_000
    for kind in ("data block flipped", "table file deleted", "manifest emptied", "current flipped"):
        state = tmp_path / kind
        shutil.copytree(tmp_path / "good", state)
        folder = state / "count" / "0" / "0"
        assert damage(folder, 1, kind)
        caplog.clear()
        with caplog.at_level(logging.ERROR, "streams"):
            async with running(config(broker_address, prefix, state), agent) as group:
                await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
                await produce(broker_address, prefix + "in", ids(range(0, 3_000, 10)))
                await until(lambda group=group: done(group, 300))
        count += 300
        assert len(list(folder.parent.glob("0.damaged-*"))) == 1, kind
        assert caplog.text.count("is damaged") == 1, kind
    answers = [orjson.loads(r.value) for r in await committed(broker_address, prefix + "out")]
    assert len(answers) == count
    counts = Counter()
    for answer in answers:
        assert answer["before"] == counts[answer["id"]]
        counts[answer["id"]] += 1
    assert len({number % CELLS for number in counts}) == CELLS


async def test_damage_under_a_running_task_ends_its_session_only(
    broker_address, prefix, tmp_path, caplog
):
    """What is not in memory is read from a block that is damaged by then."""
    conf = config(broker_address, prefix, tmp_path)
    agent = dataclasses.replace(
        spec(prefix),
        tables=lambda: [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen", cache_bytes=0)],
    )
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(3_000)))
    with caplog.at_level(logging.WARNING, "streams"):
        async with running(conf, agent) as group:
            await until(lambda: done(group, 3_000))
            store = group.tasks["count", 0].session._store
            for family in store._families.values():
                family.flush()
            for table in store.folder.glob("*.sst"):
                content = table.read_bytes()
                half = len(content) // 2
                table.write_bytes(bytes(b ^ 0xFF for b in content[:half]) + content[half:])
            await produce(broker_address, prefix + "in", ids(range(3_000)))
            await until(lambda: done(group, 6_000))
            assert group.statuses()[0].reopenings >= 1
    assert "the state is being restored from the changelogs" in caplog.text
    answers = [orjson.loads(r.value) for r in await committed(broker_address, prefix + "out")]
    assert Counter(answer["before"] for answer in answers) == {0: 3_000, 1: 3_000}
