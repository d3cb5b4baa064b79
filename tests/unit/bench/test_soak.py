"""What a soak reports of its curves."""

import math
import os

import pytest

from bench.faults.fault_plan import Fault
from bench.soak.curves import Curves, Sample
from bench.soak.soak import events


def test_growth_is_that_of_the_longest_life():
    curves = Curves()
    curves.disk = [(0.0, 1.0), (3600.0, 1.0)]
    for second in range(0, 3600, 60):
        curves.samples.append(Sample(second, 1, 100 + second / 60, 30))
    for second in range(0, 600, 60):
        curves.samples.append(Sample(second, 2, 1000 - second, 50))
    assert curves.growth("memory_mb") == pytest.approx(60)
    assert curves.plain(60)["memory_mb_longest_lived"][:2] == [100, 101]
    assert curves.growth("open_files") == 0
    assert Curves().growth("memory_mb") == 0


def test_growth_is_that_of_the_second_half_of_a_life():
    curves = Curves()
    for second in range(0, 1200, 5):
        curves.samples.append(Sample(second, 1, 100 + min(second, 590), 30))
    assert curves.growth("memory_mb") == 0


def test_curves_have_a_point_for_each_step(tmp_path):
    curves = Curves()
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    for second in (0.0, 5.0, 10.0, 25.0):
        curves.look(second, [os.getpid(), 2**22], tmp_path)
        curves.latencies.append((second, 0.05))
    shown = curves.plain(10.0)
    assert {len(values) for values in shown.values()} == {3}
    assert shown["p99_ms"][0] == pytest.approx(50)
    assert all(value > 1 for value in shown["memory_mb_longest_lived"])
    assert math.isnan(curves.p99(100, 200))


@pytest.mark.parametrize("minutes", [2, 5, 30])
def test_the_faults_fill_the_time(minutes):
    planned = events(60 * minutes, 1)
    assert Fault.ROLLING_RESTART in {event.fault for event in planned}
    assert sum(event.rest for event in planned) <= 60 * minutes
    kills = [event for event in planned if event.fault is Fault.KILL_WORKER]
    assert all(event.target == 1 for event in kills)
    assert len(kills) == max(0, int(minutes * 60 / 150) - 1)
