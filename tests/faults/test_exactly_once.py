"""Exactly once while workers, disks, a broker and the network fail: real processes, short runs."""

import os

import pytest

from bench.faults import engine as faults
from bench.faults import pipeline as pipeline_faults
from bench.faults.fault_plan import HASTY, PIPELINE_SHORT, SHORT, Fault, schedule
from bench.faults.verdict import Record, judge, longest_gap

SEED = int(os.environ.get("HB_FAULTS_SEED", "20"))


@pytest.mark.timeout(1_200)  # a minute each on a machine that has nothing else to do
@pytest.mark.parametrize(
    ("run", "plan"),
    [
        (faults.run, SHORT.with_network(HASTY)),
        (pipeline_faults.run, PIPELINE_SHORT.with_disk().with_security()),
    ],
)
def test_nothing_is_lost_doubled_or_different(run, plan):
    """The pipeline runs on three secure brokers, with a log-in and rights for each program."""
    report = run(plan, SEED, print)
    figures = report["figures"]
    exact = [figures[name] for name in ("lost", "double", "differing")]
    assert exact == [0, 0, 0], report.get("findings")
    if run is pipeline_faults.run:
        assert figures["damaged"] >= plan.damages
        assert figures["set_aside"] > 0
        assert figures["diagnoses"] == figures["labels"] == plan.records


def test_a_seed_repeats_its_schedule():
    assert schedule(SHORT, 5) == schedule(SHORT, 5)
    assert schedule(SHORT, 5) != schedule(SHORT, 6)
    counts = [event.fault for event in schedule(SHORT, 5)]
    assert counts.count(Fault.KILL_WORKER) == SHORT.kills


def stream():
    inputs = [Record(0, n, b"k", b'{"id":%d,"seq":%d}' % (n % 2, n)) for n in range(4)]
    outputs = [Record(0, n, b"k", b'{"seq":%d,"before":%d}' % (n, n // 2)) for n in range(4)]
    private = [Record(0, 0, b"seen/0", b"2"), Record(0, 0, b"seen/1", b"2")]
    shared = [
        Record(0, 0, b"counts/" + cell.to_bytes(8, "big"), (2).to_bytes(8, "little"))
        for cell in (0, 1)
    ]
    return inputs, outputs, private, shared


def test_the_judge_finds_what_is_planted():
    inputs, outputs, private, shared = stream()
    verdict = judge(inputs, outputs, private, shared)
    assert (verdict.lost, verdict.double, verdict.differing) == (0, 0, 0)
    assert judge(inputs, outputs[1:], private, shared).lost == 1
    assert judge(inputs, [*outputs, outputs[0]], private, shared).double == 1
    wrong = Record(0, 0, b"k", b'{"seq":0,"before":7}')
    assert judge(inputs, [wrong, *outputs[1:]], private, shared).differing == 1
    assert judge(inputs, outputs, private[1:], shared).differing == 1
    assert judge(inputs, outputs, private, shared[1:]).differing == 1


def test_gaps_are_per_partition_and_reach_over_the_edges():
    steady = [Record(0, n * 100, b"", b"") for n in range(100)]
    silent = [Record(1, n * 100, b"", b"") for n in range(100) if not 30 < n < 80]
    assert longest_gap(steady, 3.0, 9.0) < 0.2
    assert 4.9 < longest_gap(steady + silent, 3.5, 9.0) < 5.1
    assert longest_gap([Record(0, 1_000, b"", b"")], 3.0, 9.0) == 8.0
