"""State read from changelogs: the last value of each key, per partition, summed."""

from types import SimpleNamespace

import numpy as np
import orjson
import pytest

from agents.state_view import StateView
from streams.tasks.changelog import META_KEY

TOPIC = "x.shared"


def record(key, value, partition=0, topic=TOPIC):
    return SimpleNamespace(topic=topic, partition=partition, key=key, value=value)


def cell(number, *row):
    return b"scores/" + number.to_bytes(8, "big", signed=True), np.array(row, np.int64).tobytes()


@pytest.fixture
def view():
    return StateView({TOPIC: ("scores", "head")})


def test_the_last_row_of_each_partition_counts(view):
    assert view.take([record(*cell(0, 1, 2)), record(*cell(0, 3, 4)), record(*cell(5, 1, 1))])
    view.take([record(*cell(0, 10, 10), partition=1)])
    assert {key: row.tolist() for key, row in view.sums(TOPIC, "scores").items()} == {
        0: [13, 14],
        5: [1, 1],
    }


def test_deleted_keys_are_gone(view):
    view.take([record(b"head/ledger", b"1"), record(b"head/ledger", b"2", partition=1)])
    assert view.entries(TOPIC, "head", b"ledger") == [b"1", b"2"]
    view.take([record(b"head/ledger", None)])
    assert view.entries(TOPIC, "head", b"ledger") == [b"2"]


def test_what_is_not_wanted_is_not_kept(view):
    assert not view.take([record(b"models/a", b"large"), record(None, b"")])
    assert view.entries(TOPIC, "models", b"a") == []
    assert view.sums(TOPIC, "models") == {}


def test_positions_and_what_was_seen(view):
    keys = (META_KEY, b"head/ledger")
    assert not view.has(TOPIC, 0, keys)
    view.take([record(META_KEY, orjson.dumps({"positions": {"in": 7}}))])
    assert view.positions[TOPIC, 0] == {"in": 7}
    assert not view.has(TOPIC, 0, keys)
    view.take([record(b"head/ledger", b"1")])
    assert view.has(TOPIC, 0, keys)
    assert not view.has(TOPIC, 1, keys)
