"""Tables and their store: equal to a plain dictionary whatever happens, all or nothing on disk."""

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.engine.state import CountsTable, EntriesTable, Store
from streams.engine.state.store import StoreError, open_free
from streams.engine.state.table import split_key

KEYS = st.binary(min_size=1, max_size=2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=40)),
        st.tuples(st.just("delete"), KEYS, st.just(b"")),
        st.tuples(st.sampled_from(["drain", "settle", "reload"]), st.just(b""), st.just(b"")),
    ),
    max_size=60,
)


class Harness:
    """Drives a table through drains and stores as a task does."""

    def __init__(self, table, store):
        self.table, self.store = table, store
        self.flying = None
        table.load(store)

    def drain(self):
        self.settle()
        self.flying = self.table.drain()

    def settle(self):
        if self.flying is not None:
            write(self.store, {self.table.name: self.flying})
            self.table.settle()
            self.flying = None

    def reload(self):
        self.drain()
        self.settle()
        self.table.load(self.store)


def write(store, changes, offset=1):
    store.write(changes, offsets={"log": offset}, positions={"in": offset}, layout={"t": "x"})


@settings(max_examples=40)
@given(steps=STEPS, cache=st.sampled_from([0, 300, 1 << 20]))
def test_entries_equal_a_dictionary(tmp_path_factory, steps, cache):
    folder = tmp_path_factory.mktemp("state")
    with Store(folder, ["t"]) as store:
        table, model = EntriesTable("t", cache_bytes=cache), {}
        harness = Harness(table, store)
        for action, key, value in steps:
            if action == "put":
                table.put(key, value)
                model[key] = value
            elif action == "delete":
                table.delete(key)
                model.pop(key, None)
            else:
                getattr(harness, action)()
            assert len(table) == len(model)
            assert table.get(key) == model.get(key)
        assert list(table.items()) == sorted(model.items())
        assert set(table.keys()) == set(model)
        asked = [*model, b"absent"]
        assert table.get_many(asked) == [*model.values(), None]
        harness.reload()
        assert list(table.items()) == sorted(model.items())


def test_entries_keep_no_more_values_than_the_cache_may_hold(tmp_path):
    with Store(tmp_path, ["t"]) as store:
        table = EntriesTable("t", cache_bytes=100_000)
        harness = Harness(table, store)
        table.put_many((b"%d" % n, bytes(1_000)) for n in range(1_000))
        assert table.nbytes > 1_000_000
        harness.drain()
        harness.settle()
        assert table.nbytes < 300_000
        assert table.get(b"0") == bytes(1_000)
        assert len(table) == 1_000


@settings(max_examples=40)
@given(
    adds=st.lists(
        st.lists(st.tuples(st.integers(0, 40), st.integers(-5, 5)), min_size=1, max_size=20),
        max_size=8,
    ),
    cells=st.sampled_from([41, None]),
)
def test_counts_survive_drains_and_reloads_exactly(tmp_path_factory, adds, cells):
    folder = tmp_path_factory.mktemp("state")
    model = {}
    with Store(folder, ["t"]) as store:
        table = CountsTable("t", 2, cells=cells)
        harness = Harness(table, store)
        for batch in adds:
            ids = np.array([cell for cell, _ in batch])
            deltas = np.array([[amount, 1] for _, amount in batch])
            table.add(ids, deltas)
            for cell, amount in batch:
                row = model.setdefault(cell, [0, 0])
                row[0] += amount
                row[1] += 1
            harness.drain()
        harness.reload()
        numbers, rows = table.items()
        assert dict(zip(numbers.tolist(), rows.tolist(), strict=True)) == model
        assert list(store.keys("t")) == sorted(cell.to_bytes(8, "big") for cell in model)


def test_counts_drain_only_what_was_touched(tmp_path):
    table = CountsTable("t", 1)
    table.add(np.array([3, 3, 9]), np.ones((3, 1), np.int64))
    assert len(table.drain()) == 2
    assert table.drain() == []
    table.put(np.array([3]), np.array([[7]]))
    assert table.drain() == [((3).to_bytes(8, "big"), (7).to_bytes(8, "little"))]


def test_a_write_is_all_or_nothing_with_its_offset(tmp_path):
    """Kill a process while it writes: what is there belongs to the offset that is there."""
    script = """
import os, signal, sys, threading
from streams.engine.state import Store
with Store(sys.argv[1], ["t"]) as store:
    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    n = 0
    while True:
        n += 1
        store.write({"t": [(b"%d" % k, b"%d" % n) for k in range(50)]},
                    offsets={"log": n}, positions={"in": n}, layout={})
"""
    code = script.replace("Store(sys.argv[1]", "Store(__import__('pathlib').Path(sys.argv[1])")
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert run.returncode == -9
    with Store(tmp_path, ["t"]) as store:
        position = store.offsets["log"]
        assert position > 1
        assert store.positions == {"in": position}
        assert {value for _, value in store.items("t")} == {b"%d" % position}


def test_a_folder_in_use_is_passed_by(tmp_path):
    with open_free(tmp_path, ["t"]) as first, open_free(tmp_path, ["t"]) as second:
        assert (first.folder.name, second.folder.name) == ("0", "1")
    with open_free(tmp_path, ["t"]) as again:
        assert again.folder.name == "0"


def test_a_folder_of_another_format_is_refused(tmp_path):
    with Store(tmp_path, ["t"]) as store:
        store._db.put(b"format", b"99")
    with pytest.raises(StoreError, match="format 99 and this version reads 2"):
        Store(tmp_path, ["t"])
    # The refusal left the folder free for the version that can read it.
    with pytest.raises(StoreError, match="format 99"):
        Store(tmp_path, ["t"])


def test_a_table_may_be_added_later(tmp_path):
    with Store(tmp_path, ["a"]) as store:
        write(store, {"a": [(b"k", b"v")]})
    with Store(tmp_path, ["a", "b"]) as store:
        assert store.get("a", b"k") == b"v"
        assert store.get("b", b"k") is None


def test_a_folder_that_is_replaced_is_kept_under_another_name(tmp_path):
    with Store(tmp_path / "0", ["t"]) as store:
        write(store, {"t": [(b"k", b"v")]})
        store.replace("old")
        assert store.offsets == {}
        assert list(store.items("t")) == []
    (aside,) = tmp_path.glob("0.old-*")
    with Store(aside, ["t"]) as store:
        assert store.get("t", b"k") == b"v"


def test_changelog_keys_split_at_the_table(tmp_path):
    assert split_key(EntriesTable("seen").prefix + b"a/b") == ("seen", b"a/b")


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "1a", "x" * 65])
def test_table_names_are_plain_words(name):
    with pytest.raises(ValueError, match="lower-case"):
        EntriesTable(name)


def test_what_was_deleted_is_in_no_file_after_a_scrub(tmp_path):
    folder = tmp_path / "store"
    with Store(folder, ["features", "pending"]) as store:
        write(store, {"features": [(b"patient", b"planted-value")], "pending": [(b"z", b"kept")]})
        store.scrub()
        write(store, {"features": [(b"patient", None)]})
        store.scrub()
        assert not named(folder, b"planted-value", b"patient")
        assert store.get("pending", b"z") == b"kept"


def named(folder, *needles):
    """Return the files that hold one of some byte strings."""
    files = [file for file in folder.iterdir() if file.is_file()]
    return [file for file in files if any(needle in file.read_bytes() for needle in needles)]


def test_an_erasure_calls_for_a_scrub_until_it_is_done(tmp_path):
    """Whether the worker has been killed before it, or has restored the state meanwhile."""
    folder, tables = tmp_path / "store", ["features", "erased"]
    with Store(folder, tables, ["erased"]) as store:
        write(store, {"features": [(b"patient", b"planted-value")]})
        assert not store.unscrubbed
        store.scrub()  # so that the value is in a file of its own
        write(store, {"features": [(b"patient", None)], "erased": [(b"digest", b"1")]})
        assert store.unscrubbed
    with Store(folder, tables, ["erased"]) as store:
        assert store.unscrubbed
        assert named(folder, b"planted-value")
        store.scrub()
        assert not named(folder, b"planted-value", b"patient")
        assert not store.unscrubbed
        write(store, {"features": [(b"other", b"value")], "erased": []})
        assert not store.unscrubbed
    with Store(folder, tables, ["erased"]) as store:
        assert not store.unscrubbed
        assert store.get("erased", b"digest") == b"1"


def test_the_tables_of_a_store_share_one_buffer(tmp_path):
    names = [f"t{number}" for number in range(6)]
    with Store(tmp_path / "s", names) as store:

        def waiting():
            size = "rocksdb.cur-size-active-mem-table"
            return sum(int(store._families[name].property_value(size)) for name in names)

        for number in range(30):
            rows = [(b"%d" % number, bytes([number]) * (1 << 18))]
            write(store, dict.fromkeys(names, rows))
        # Files are written in the background, and the next one is begun by a write.
        deadline = time.monotonic() + 30
        while waiting() > 20 << 20 and time.monotonic() < deadline:
            time.sleep(0.02)
            write(store, {"t0": [(b"", b"")]})
        assert 0 < waiting() <= 20 << 20, "of 45 MB that were written"
