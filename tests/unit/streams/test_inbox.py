"""Batches leave the inbox in the order of time, whatever the order in which they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.engine.tasks.inbox import Inbox, Pace
from streams.kafka.batch import Batch

PACE = Pace(chunk=4, room=1000, slack=10, patience=3.0)
WALL = 10_000_000
OLD = 1_000
"""Long past; records at WALL are recent."""


def batch(topic, *times, base=0, skip=0):
    offsets = list(range(base, base + len(times)))
    after = base + len(times) + skip
    keys = [b"k"] * len(times)
    return Batch(
        topic, 0, base, after, after, offsets, list(times), keys, keys, {}, 10 * len(times)
    )


class Ends(dict):
    """What the broker has of each topic; unknown until it is set."""

    def __call__(self, topic):
        return self.get(topic)


def inbox(leader=None, topics=("a", "b"), **ends):
    return Inbox(dict.fromkeys(topics, 0), PACE, Ends(ends), leader=leader)


def taken(box, now=0.0, wall=WALL):
    """Take all that may go, as (topic, times)."""
    pieces = []
    while (piece := box.take(now, wall)) is not None:
        pieces.append((piece.topic, piece.timestamps))
    return pieces


def test_the_oldest_goes_first_and_nobody_gets_far_ahead():
    box = inbox(a=3, b=2)
    box.put(batch("a", OLD, OLD + 20, OLD + 40), 0.0)
    box.put(batch("b", OLD + 25, OLD + 26), 0.0)
    assert taken(box) == [
        ("a", [OLD, OLD + 20]),
        ("b", [OLD + 25, OLD + 26]),
        ("a", [OLD + 40]),
    ]


def test_what_is_on_the_broker_and_not_here_is_waited_for():
    box = inbox(a=2, b=5)
    box.put(batch("a", OLD, OLD + 50), 0.0)
    assert taken(box) == []
    box.put(batch("b", OLD + 5), 0.0)
    assert taken(box) == [("a", [OLD]), ("b", [OLD + 5])]
    box.put(batch("b", OLD + 60, base=1), 0.0)
    assert taken(box)[0] == ("a", [OLD + 50])


def test_a_topic_whose_end_is_not_known_yet_is_waited_for():
    box = inbox(a=1)
    box.put(batch("a", OLD), 0.0)
    assert taken(box) == []


def test_new_records_do_not_wait_for_what_is_not_here():
    box = inbox(a=1, b=5, leader="b")
    box.put(batch("a", WALL - 100), 0.0)
    assert taken(box) == [("a", [WALL - 100])]


def test_nobody_overtakes_a_leader_that_moves():
    box = inbox("lead", ("lead", "b"), lead=2, b=3)
    box.put(batch("b", OLD, OLD + 4, OLD + 9), 0.0)
    box.put(batch("lead", OLD + 1, OLD + 4), 0.0)
    assert taken(box) == [("lead", [OLD + 1, OLD + 4]), ("b", [OLD, OLD + 4])]
    assert taken(box, now=2.9) == []
    assert taken(box, now=3.1) == [("b", [OLD + 9])]


def test_a_leader_of_which_nothing_came_yet_is_waited_for_a_little():
    box = inbox("lead", ("lead", "b"), lead=0, b=1)
    box.put(batch("b", OLD), 0.0)
    assert taken(box, now=1.0) == []
    assert taken(box, now=3.0) == [("b", [OLD])]


def test_a_leader_goes_as_far_as_it_may_before_the_others():
    box = inbox("lead", ("lead", "b"), lead=3, b=2)
    box.put(batch("b", OLD, OLD + 1), 0.0)
    box.put(batch("lead", OLD + 5, OLD + 10, OLD + 11), 0.0)
    assert taken(box)[0] == ("lead", [OLD + 5, OLD + 10])


def test_a_step_without_records_passes_at_once():
    box = inbox("lead", ("lead", "b"), lead=5)
    box.put(batch("b", skip=1), 0.0)
    piece = box.take(0.0, WALL)
    assert (piece.topic, piece.next, len(piece)) == ("b", 1, 0)
    assert len(box) == 0


def test_room_is_counted_by_topic_and_exactly():
    box = inbox(a=100, b=0)
    box.put(batch("a", *range(OLD, OLD + 99)), 0.0)
    assert box.has_room("a")
    box.put(batch("a", OLD + 99, base=99), 0.0)
    assert not box.has_room("a")
    assert box.has_room("b")
    taken(box)
    assert box.nbytes == 0


def test_only_what_follows_is_taken_in():
    box = inbox(a=9, b=0)
    assert not box.put(batch("a", OLD, base=1), 0.0)
    assert box.put(batch("a", OLD), 0.0)
    assert box.expected == {"a": 1, "b": 0}
    box.skip("a", 5)
    assert box.put(batch("a", OLD, base=5), 0.0)
    box.clear({"a": 3, "b": 0})
    assert (len(box), box.expected["a"]) == (0, 3)


def test_a_stream_moves_while_old_records_come():
    box = inbox(a=9, b=0)
    assert box.moving(1.0, WALL)  # just opened: nothing is known yet
    assert not box.moving(4.0, WALL)
    box.put(batch("a", OLD), 5.0)
    taken(box, now=5.0)
    assert box.moving(5.1, WALL)
    box.put(batch("a", WALL, base=1), 5.2)
    taken(box, now=5.2)
    assert not box.moving(5.3, WALL)


times = st.lists(st.integers(0, 60), max_size=12).map(sorted)


@given(a=times, b=times, leader=st.sampled_from([None, "a", "b"]))
def test_every_record_leaves_once_in_its_order_and_near_the_others_in_time(a, b, leader):
    ends = {"a": len(a), "b": len(b)}
    box = Inbox({"a": 0, "b": 0}, PACE, Ends(ends), leader=leader)
    for topic, column in (("a", a), ("b", b)):
        box.put(batch(topic, *[OLD + t for t in column]), 0.0)
    left = {"a": [OLD + t for t in a], "b": [OLD + t for t in b]}
    for topic, column in taken(box, now=100.0):
        opposite = left["b" if topic == "a" else "a"]
        assert left[topic][: len(column)] == column
        slack = 0 if leader not in (None, topic) else PACE.slack
        if column and opposite:
            assert max(column) <= opposite[0] + slack
        del left[topic][: len(column)]
    assert left == {"a": [], "b": []}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_a_cut_loses_nothing(size):
    whole = batch("a", *range(5), base=3, skip=2)
    first, rest = whole.cut(size)
    assert first.base == 3
    if rest is None:
        assert first is whole
    else:
        assert first.next == rest.base
        assert first.offsets + rest.offsets == whole.offsets
        assert first.nbytes + rest.nbytes == whole.nbytes
        assert rest.next == whole.next
