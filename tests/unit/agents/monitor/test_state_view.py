"""State read from changelogs: the last value of each key, per partition, summed."""

from types import SimpleNamespace

import numpy as np
import orjson
import pytest

from agents.monitor.state_view import StateView
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka.batch import Batch

TOPIC = "x.shared"


def record(key, value, partition=0, topic=TOPIC):
    return SimpleNamespace(topic=topic, partition=partition, key=key, value=value)


def cell(number, *row):
    return b"scores/" + number.to_bytes(8, "big", signed=True), np.array(row, np.int64).tobytes()


@pytest.fixture
def view():
    return StateView({TOPIC: ("scores", "totals")})


def test_the_last_row_of_each_partition_counts(view):
    assert view.take([record(*cell(0, 1, 2)), record(*cell(0, 3, 4)), record(*cell(5, 1, 1))])
    view.take([record(*cell(0, 10, 10), partition=1)])
    assert {key: row.tolist() for key, row in view.sums(TOPIC, "scores").items()} == {
        0: [13, 14],
        5: [1, 1],
    }


def rows(view, table):
    return {
        partition: {number: row.tolist() for number, row in cells.items()}
        for partition, cells in view.parts(TOPIC, table)
    }


def test_partitions_stay_apart_and_deleted_keys_are_gone(view):
    view.take([record(*cell(0, 1), partition=1), record(*cell(3, 2))])
    assert rows(view, "scores") == {0: {3: [2]}, 1: {0: [1]}}
    view.take([record(cell(3)[0], None)])
    assert rows(view, "scores") == {0: {}, 1: {0: [1]}}


def test_what_is_not_wanted_is_not_kept(view):
    assert not view.take([record(b"models/a", b"large"), record(None, b"")])
    assert rows(view, "models") == {}
    assert view.sums(TOPIC, "models") == {}


def test_positions_are_those_of_the_last_commit(view):
    for position in (7, 8):
        assert view.take([record(META_KEY, orjson.dumps({"positions": {"in": position}}))])
    assert view.positions == {(TOPIC, 0): {"in": 8}}


def test_a_batch_is_its_records_and_tells_their_keys(view):
    columns = zip(cell(0, 1), cell(0, 5), (META_KEY, b"{}"), (None, b"?"), strict=True)
    keys, values = map(list, columns)
    batch = Batch(TOPIC, 2, 0, 4, 4, [0, 1, 2, 3], [0] * 4, keys, values)
    assert view.take_batch(batch) == {cell(0)[0], META_KEY, None}
    assert rows(view, "scores") == {2: {0: [5]}}
    assert view.positions == {(TOPIC, 2): {}}
