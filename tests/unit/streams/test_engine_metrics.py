"""Metrics of the engine: what is heard from tasks, and what they are asked."""

from importlib.metadata import version
from platform import python_version
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from schemas.refusals import Reason
from streams.engine.measurements import Notes
from streams.engine.observer import Committed, Observer, Observers, Opened
from streams.engine.tasks import task_metrics as metrics
from streams.engine.tasks.task import Phase, TaskStatus
from streams.engine.tasks.task_metrics import EngineCollector, EngineObserver

NOW = 1_700_000_000.0


class Heard(Observer):
    """Writes down what it hears."""

    def __init__(self):
        self.calls = []

    def opened(self, *events):
        self.calls.append(events)

    def committed(self, *events):
        self.calls.append(events)

    def interrupted(self, *events):
        self.calls.append(events)

    def closed(self, *events):
        self.calls.append(events)


def samples(registry, name):
    return {
        tuple(sample.labels.values()): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == name
    }


def commit(**changes):
    fields = {
        "agent": "count", "partition": 1, "records": 20, "outputs": 20, "changes": {},
        "dead": {"malformed": 2}, "seconds": 0.03, "waited": 0.2, **changes,
    }  # fmt: skip
    return Committed(**fields)


def test_what_tasks_tell_is_counted_and_all_who_listen_hear_it():
    registry, then = CollectorRegistry(), Heard()
    observer = Observers(EngineObserver(registry), then)
    events = [
        ("opened", (Opened("count", 1, 0.5, 300),)),
        ("committed", (commit(),)),
        ("committed", (commit(records=5, dead={}, notes=Notes()),)),
        ("interrupted", ("count", 1, "why", False)),
        ("interrupted", ("count", 1, "why", True)),
        ("closed", ("count", 1)),
    ]
    for name, arguments in events:
        getattr(observer, name)(*arguments)
    assert then.calls == [arguments for _, arguments in events]
    expected = {
        "hb_commits_total": {("count", "1"): 2},
        "hb_reopenings_total": {("count", "1"): 1},
        "hb_restored_records_total": {("count",): 300},
        "hb_restore_seconds_sum": {("count",): 0.5},
        "hb_dead_letters_total": {
            ("count", reason.value): 2 if reason is Reason.MALFORMED else 0 for reason in Reason
        },
        "hb_batch_records_sum": {("count",): 25},
        "hb_batch_records_count": {("count",): 2},
        "hb_batch_seconds_sum": {("count",): 0.4},
        "hb_transaction_seconds_sum": {("count",): 0.06},
    }
    assert {name: samples(registry, name) for name in expected} == expected


def status(position=10, end=10, time=None, phase=Phase.RUNNING, oldest=None):
    times = {} if time is None else {"in": int(1000 * time)}
    return TaskStatus("count", 1, phase, "", 0, 0, 0, {"in": position}, oldest, {"in": end}, times)


def collector(monkeypatch):
    """Return a collector, and what sets the tasks and the clock."""
    engine = SimpleNamespace(trouble=list, statuses=list)
    registry = CollectorRegistry()
    registry.register(EngineCollector(engine))

    def at(seconds, *statuses):
        monkeypatch.setattr(metrics, "time", SimpleNamespace(time=lambda: NOW + seconds))
        engine.statuses = lambda: list(statuses)
        return registry

    return at


@pytest.mark.parametrize(
    ("looks", "records", "seconds"),
    [
        ([(0, status())], 0, 0),
        # Nothing is known but that there is something: it was first heard of 5 s ago.
        ([(0, status(3)), (5, status(3))], 7, 5),
        # The last committed record is two hours old: so old may the next one be.
        ([(0, status(3)), (5, status(4, time=NOW - 7200))], 6, 7205),
        # It was level 15 s ago, so what came since is no older, however old the last record is.
        ([(0, status(time=NOW - 7200)), (15, status(9, time=NOW - 7200))], 1, 15),
        # The last record was written after that.
        ([(0, status()), (15, status(9, time=NOW + 10))], 1, 5),
        # A clock elsewhere runs ahead.
        ([(0, status(9, time=NOW + 60))], 1, 0),
        # What is heard of the end may be older than what is committed.
        ([(0, status(12))], 0, 0),
    ],
)
def test_lag(monkeypatch, looks, records, seconds):
    at = collector(monkeypatch)
    for when, reading in looks:
        registry = at(when, reading)
        place = ("count", "in", "1")
        lag = samples(registry, "hb_lag_records"), samples(registry, "hb_lag_seconds")
    assert lag == ({place: records}, {place: pytest.approx(seconds)})


def test_a_partition_that_comes_back_starts_again(monkeypatch):
    at = collector(monkeypatch)
    samples(at(0, status()), "hb_lag_seconds")
    samples(at(10), "hb_lag_seconds")
    assert samples(at(100, status(3)), "hb_lag_seconds") == {("count", "in", "1"): 0}


def test_an_end_that_nobody_told_is_no_lag(monkeypatch):
    registry = collector(monkeypatch)(0, status(end=None))
    assert samples(registry, "hb_lag_records") == {}


def test_tasks(monkeypatch):
    at = collector(monkeypatch)
    registry = at(0, status(oldest=3.5))
    assert samples(registry, "hb_task_owner") == {("count", "1"): 1}
    assert samples(registry, "hb_uncommitted_seconds") == {("count", "1"): 3.5}
    registry = at(0, status(phase=Phase.WAITING))
    assert samples(registry, "hb_task_owner") == {("count", "1"): 0}
    assert samples(registry, "hb_uncommitted_seconds") == {("count", "1"): 0}


@pytest.mark.parametrize(("trouble", "ready"), [([], 1), (["a task is failed"], 0)])
def test_readiness_and_build(trouble, ready):
    registry = CollectorRegistry()
    registry.register(EngineCollector(SimpleNamespace(trouble=lambda: trouble, statuses=list)))
    assert samples(registry, "hb_ready") == {(): ready}
    (versions,) = samples(registry, "hb_build_info")
    assert versions == (version("hedged-bandits"), python_version(), version("aiokafka"))
