"""How many patients may be in flight: few as long as little is known, never more than is useful."""

import pytest

from agents.clients import label_pace
from agents.clients.label_pace import LabelPace
from settings.errors import HbError
from tests.inline_pipeline import configured


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [100.0]
    monkeypatch.setattr(label_pace.time, "monotonic", lambda: now[0])
    return now


def ids(start, count):
    return [f"p{k}" for k in range(start, start + count)]


def sent_and_learned(pace, clock, rounds, seconds):
    """Fill the room again and again; everything comes back after a while."""
    labels, widths = 0, []
    for _ in range(rounds):
        names = ids(labels, pace.room())
        pace.note(names, ["ill"] * len(names))
        assert pace.room() == 0
        clock[0] += seconds(len(names))
        assert pace.see({name.encode() for name in names}) == len(names)
        labels += len(names)
        widths.append(len(names))
    return widths


def test_patients_under_way_grow_with_what_is_known(tmp_path, clock):
    pace = LabelPace(configured(tmp_path))
    widths = sent_and_learned(pace, clock, 120, lambda _: 0.1)
    assert widths[:40] == [1] * 40, "one by one at first"
    labels = 0
    for width in widths:
        assert width <= max(1, labels // 20)
        labels += width
    assert widths[-1] > 10, "and faster and faster"


def test_no_more_are_in_flight_than_the_pipeline_can_take(tmp_path, clock):
    """A pipeline that takes 0.1 s, and 100 patients a second: more than 20 would only wait."""
    pace = LabelPace(configured(tmp_path))
    widths = sent_and_learned(pace, clock, 400, lambda n: max(0.1, n / 100))
    assert 10 <= widths[-1] <= 20
    assert pace.learned // 20 > 100, "what is known would allow more"


def test_unlabelled_and_repeated_patients_are_not_waited_for(tmp_path, clock):
    pace = LabelPace(configured(tmp_path))
    pace.note(["a", "b", "a"], ["ill", "", "well"])
    assert pace.see({b"a", b"b", b"c"}) == 1
    pace.note(["a"], ["ill"])
    assert pace.room() == 1


def test_if_nothing_is_ever_learned_teaching_ends_with_a_sentence(tmp_path, clock):
    pace = LabelPace(configured(tmp_path), strict=True)
    pace.note(["a"], ["ill"])
    with pytest.raises(HbError, match="is a worker running"):
        pace._give_up()
    lenient = LabelPace(configured(tmp_path))
    lenient.note(["a"], ["ill"])
    lenient._give_up()
    assert (lenient.overtaken, lenient.room()) == (1, 1)
