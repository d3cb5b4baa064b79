"""A soak of one minute: its only fault is the rolling restart, and everything is reported."""

import pytest

from bench.soak.soak import run

REPORTED = {
    "lost", "double", "differing", "patients", "labels", "faults", "memory_mb_per_hour",
    "open_files_per_hour", "disk_mb_last", "p99_ms_first", "p99_ms_last",
}  # fmt: skip


@pytest.mark.timeout(900)
def test_a_minute_of_soak_loses_nothing_and_reports_every_figure():
    said = []
    report = run(1.0, 1, said.append)
    figures = report["figures"]
    assert figures.keys() == REPORTED
    assert report["findings"] == []
    assert [figures[name] for name in ("lost", "double", "differing")] == [0, 0, 0]
    assert (figures["patients"], figures["faults"]) == (2400, 1)
    assert 0.9 * 2400 < figures["labels"] <= 2400
    assert figures["p99_ms_first"] > 0
    assert figures["disk_mb_last"] > 0
    assert len({len(values) for values in report["curves"].values()}) == 1
    assert "memory_mb_longest_lived" in report["curves"]
    assert said
