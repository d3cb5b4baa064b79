"""Rates are of what was committed; who has work and does not move is silent."""

import pytest

from agents.monitor.console.activity import Activity
from streams.kafka.topics import Topics
from tests.unit.agents.monitor.console.looks import overview
from tests.unit.agents.toy import SETTINGS

NAMES = Topics.of(SETTINGS)


def pulse(*looks):
    """Return the pulse after looks of one second each."""
    activity = Activity(NAMES)
    for at, look in enumerate(looks):
        activity.take(look, float(at))
    return activity


def states(activity):
    return [health.state for health in activity.health().values()]


def test_before_the_first_look_nothing_is_known():
    assert (pulse().rates(), pulse().health(), pulse().passed) == ({}, {}, {})


def test_rates_are_over_the_last_seconds():
    activity = pulse(
        *[overview(left=10 * s, right=20 * s, learned=s, diagnosed=5 * s) for s in range(20)]
    )
    rates = activity.rates()
    assert rates["instances.left"] == pytest.approx(10)
    assert rates["instances.right"] == pytest.approx(20)
    assert rates["feedback.left"] == rates["labels"] == pytest.approx(1)
    assert rates["diagnoses"] == pytest.approx(5)
    assert rates["contexts"] == 0
    assert activity.passed["instances.right"] == 380


def test_a_burst_is_forgotten_after_the_window():
    looks = [overview(left=0), overview(left=100), *[overview(left=100)] * 8]
    assert pulse(*looks[:2]).rates()["instances.left"] == pytest.approx(100)
    assert pulse(*looks).rates()["instances.left"] == 0


def test_idle_and_at_work():
    assert states(pulse(overview())) == ["idle"] * 3
    activity = pulse(overview(), overview(left=5, right=5, predictions=10, behind=(3, 0, 0)))
    assert states(activity) == ["working"] * 3
    assert states(pulse(overview(), overview(left=5, right=5, behind=(5000, 0, 0))))[0] == "behind"


def test_a_learner_with_work_that_does_not_move_is_silent_within_seconds():
    looks = [
        overview(left=5, right=5 + 10 * s, predictions=10 * s, behind=(10 * s, 0, 0))
        for s in range(6)
    ]
    assert states(pulse(*looks[:3])) == ["idle", "working", "working"]
    activity = pulse(*looks)
    assert states(activity) == ["silent", "working", "working"]
    health = activity.health()["local.left"]
    assert not health.well
    assert health.text == "no progress for 5 s; 50 records waiting"
    activity.take(overview(left=6, right=70, behind=(60, 0, 0)), 6.0)
    assert states(activity)[0] == "working"


def test_a_learner_without_instances_is_told_apart_from_a_silent_one():
    looks = [overview(left=5, right=10 * s, predictions=20 * s) for s in range(8)]
    activity = pulse(*looks)
    assert states(activity) == ["unfed", "working", "working"]
    assert states(pulse(*[overview(left=5, right=5)] * 8)) == ["idle"] * 3, "then nobody is fed"


def test_an_agent_that_no_worker_holds():
    activity = pulse(overview(holders="-ww", behind=(1, 0, 0)))
    assert states(activity)[0] == "unheld"
    assert activity.health()["local.left"].text == "partition 0 has no worker; 1 record waiting"
