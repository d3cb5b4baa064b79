"""A short run of `hb bench hostile`: every kind of odd record once, and all are accounted for."""

from bench.hostile.benchmark import Size, run
from bench.hostile.odd_records import KINDS


def test_every_kind_is_accounted_for_and_every_good_patient_diagnosed(broker_address):
    lines = []
    report = run(Size(good=300, odd=len(KINDS)), 7, 1, lines.append, broker_address)
    figures = report["figures"]
    assert report["unaccounted"] == {}
    assert figures["diagnosed"] == figures["good"] == 300
    assert figures["odd"] == figures["kinds"] == len(KINDS) >= 40
    assert (figures["unaccounted"], figures["tasks_failed"], figures["restarts"]) == (0, 0, 0)
    assert report["outcomes"]["refused"] >= 1  # some are too much for the broker itself
    assert report["ratios"]["clean_run"] > 0
    assert len(lines) == 2
