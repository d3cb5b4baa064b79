"""Curves stay bounded, begin where they began, and end at the newest point."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agents.monitor.console.history import MARKS, History, point
from agents.monitor.scores import Scores
from tests.unit.agents.toy import SETTINGS


@given(count=st.integers(1, 3000), most=st.integers(2, 40).map(lambda k: 2 * k))
def test_bounded_in_order_from_the_first_to_the_newest(count, most):
    history = History(most)
    for n in range(count):
        history.add({"t": n, "n": n})
    numbers = [entry["n"] for entry in history.points]
    assert len(numbers) <= most
    assert numbers[0] == 0
    assert numbers[-1] == count - 1
    assert numbers == sorted(set(numbers))
    if count > most:
        assert len(numbers) >= most // 2
    gaps = [b - a for a, b in pairwise(numbers)]
    assert max(gaps[:-1], default=1) <= 2 * min(gaps[:-1], default=1), "evenly spread"


def test_where_nothing_moves_there_is_no_new_point():
    history = History()
    for t in range(10):
        history.add({"t": t, "n": 5})
    assert history.points == [{"t": 0, "n": 5}]


def test_a_point_holds_what_the_curves_show():
    scores = Scores(
        labelled=12,
        taught=30,
        rates={"ensemble": {"per": 1 / 3}, "left": {"per": 0.5}, "right": {"per": None}},
        recent={"ensemble": {"per": 0.25}},
        exploration={"left": 0.1, "right": None},
        weights={"left": 0.6, "right": 0.4},
        regret=1.5,
        bound=None,
    )
    assert point(SETTINGS, scores, 7) == {
        "t": 7,
        "n": 42,
        "h": 30,
        "e": [0.333333, 0.5, None],
        "r": [0.25, None, None],
        "x": [0.1, None],
        "w": {"left": 0.6, "right": 0.4},
        "g": 1.5,
        "b": None,
    }


def test_where_nobody_had_an_opinion_there_are_no_weights():
    scores = Scores(weights={"left": 0.0, "right": 0.0})
    assert point(SETTINGS, scores, 7)["w"] == {}


def test_a_count_that_falls_by_half_is_another_system_and_not_a_label_withdrawn():
    history = History()
    for n in (5, 6, 5):
        history.add({"t": n, "n": n})
    assert [point["n"] for point in history.points] == [5, 6, 5]
    history.add({"t": 9, "n": 2})
    assert history.points == [{"t": 9, "n": 2}]


def test_the_latest_marks_are_kept_where_they_happened():
    history = History()
    history.mark(0, "restart", "at the start")
    history.add({"t": 1, "n": 7})
    for t in range(2, 2 + MARKS):
        history.mark(t, "workers", "1 worker left")
    assert len(history.marks) == MARKS
    assert history.marks[0] == {"t": 2, "n": 7, "kind": "workers", "text": "1 worker left"}
