"""Which time a record counts with."""

from hypothesis import given
from hypothesis import strategies as st

from streams.clock import TOLERANCE
from streams.engine.tasks.record_times import RecordTimes
from streams.kafka.batch import Batch

NOW = 1_800_000_000_000
HOUR = 3_600_000


def batch(*times, topic="labels"):
    n = len(times)
    return Batch(topic, 0, 0, n, n, list(range(n)), list(times), [b"k"] * n, [b"v"] * n)


def test_sound_times_are_kept_and_the_batch_is_the_same():
    sound = batch(0, NOW - HOUR, NOW)
    times = RecordTimes()
    assert times.corrected(sound, NOW) is sound
    assert times.counted() == (0, 0)


def test_a_clock_that_is_a_little_ahead_counts_as_now():
    times = RecordTimes()
    assert times.corrected(batch(NOW + 1, NOW + TOLERANCE), NOW).timestamps == [NOW, NOW]
    assert times.counted() == (0, 0)


def test_no_time_and_one_far_ahead_take_that_of_the_record_before():
    times = RecordTimes()
    odd = batch(5, -1, NOW + HOUR, 7, NOW + TOLERANCE + 1)
    assert times.corrected(odd, NOW).timestamps == [5, 5, 5, 7, 7]
    assert times.counted() == (2, 1)
    assert times.corrected(batch(-1), NOW).timestamps == [7]
    assert times.corrected(batch(-1, topic="others"), NOW).timestamps == [NOW]
    assert times.counted() == (0, 2)
    assert times.counted() == (0, 0)


@given(st.lists(st.integers(-(2**62), 2**62), max_size=20), st.integers(0, 2**43))
def test_no_time_is_negative_or_ahead(stamps, now):
    corrected = RecordTimes().corrected(batch(*stamps), now).timestamps
    assert len(corrected) == len(stamps)
    assert all(0 <= at <= now for at in corrected)
    believed = [(s, f) for s, f in zip(stamps, corrected, strict=True) if 0 <= s <= now]
    assert all(stamp == at for stamp, at in believed)
