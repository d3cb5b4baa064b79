"""Metrics of the engine: what its tasks do, and how far they are behind.

They belong to this process, and start from zero with it. Counters are fed by tasks after their
commits (`Observer`); gauges are read from the tasks at each scrape.
"""

import platform
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from schemas.refusals import Reason
from streams.engine.held_back import Standstill
from streams.engine.meters import RECORDS, SECONDS, Counter, Histogram, Labels, Spec, filled
from streams.engine.observer import Committed, Observer, Opened
from streams.engine.tasks.group import TaskGroup
from streams.engine.tasks.record_times import AHEAD, MISSING
from streams.engine.tasks.task import Phase, TaskStatus

_TASK = ("agent", "partition")
_PLACE = ("agent", "topic", "partition")

DEAD = Spec(
    "hb_dead_letters_total",
    "counter",
    "Records that this worker could not use and sent to the dead letters, by reason.",
    ("agent", "reason"),
)
TIMES = Spec(
    "hb_corrected_times_total",
    "counter",
    "Records whose time this worker corrected: more than five minutes ahead of its clock (ahead),"
    " or without a time (missing).",
    ("agent", "why"),
)
BATCH = Spec(
    "hb_batch_records",
    "histogram",
    "Records processed in one transaction.",
    ("agent",),
    RECORDS,
)
WAITED = Spec(
    "hb_batch_seconds",
    "histogram",
    "Time from the processing of a transaction's first record to the end of its commit.",
    ("agent",),
    SECONDS,
)
TRANSACTION = Spec(
    "hb_transaction_seconds",
    "histogram",
    "Time that a transaction took on the broker and on disk.",
    ("agent",),
    SECONDS,
)
RESTORE = Spec(
    "hb_restore_seconds",
    "histogram",
    "Time from taking over a partition until its state is restored and its task is open.",
    ("agent",),
    SECONDS,
)
RESTORED = Spec(
    "hb_restored_records_total",
    "counter",
    "Changelog records read to restore state.",
    ("agent",),
)
COMMITS = Spec("hb_commits_total", "counter", "Transactions committed.", _TASK)
REOPENINGS = Spec(
    "hb_reopenings_total",
    "counter",
    "How often an error closed a task, which then opens again from its last commit.",
    _TASK,
)
LAG = Spec(
    "hb_lag_records",
    "gauge",
    "Records of a topic partition that are not committed yet, as far as the broker has reported"
    " (transaction markers count too).",
    _PLACE,
)
LAG_SECONDS = Spec(
    "hb_lag_seconds",
    "gauge",
    "How old the oldest record that is not committed yet can be, at most; 0 if there is none.",
    _PLACE,
)
HELD_BACK = Spec(
    "hb_held_back_records",
    "gauge",
    "Records of a topic partition that cannot be read yet because a transaction is still open: its"
    " own, and all after its first.",
    _PLACE,
)
HELD_BACK_SECONDS = Spec(
    "hb_held_back_seconds",
    "gauge",
    "How long such records have waited while nothing of the partition was decided; 0 if none wait.",
    _PLACE,
)
OWNER = Spec(
    "hb_task_owner",
    "gauge",
    "1 if this worker runs the task, 0 if it holds the task but has not opened it.",
    _TASK,
)
UNCOMMITTED = Spec(
    "hb_uncommitted_seconds",
    "gauge",
    "How long the oldest processed record has waited for its commit, 0 if none waits.",
    _TASK,
)
READY = Spec("hb_ready", "gauge", "1 if /readyz says that this worker is ready, else 0.")
BUILD = Spec(
    "hb_build_info",
    "gauge",
    "Always 1; its labels say what runs.",
    ("version", "python", "kafka_client"),
)
COUNTED = (DEAD, TIMES, RESTORED, COMMITS, REOPENINGS)
OBSERVED = (BATCH, WAITED, TRANSACTION, RESTORE)
ASKED = (LAG, LAG_SECONDS, HELD_BACK, HELD_BACK_SECONDS, OWNER, UNCOMMITTED, READY, BUILD)
ENGINE = (*COUNTED, *OBSERVED, *ASKED)

_WHY = {"ahead": AHEAD, "missing": MISSING}


class EngineObserver(Observer):
    """Counts what tasks report."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {spec: Counter(spec) for spec in COUNTED}
        self._histograms = {spec: Histogram(spec) for spec in OBSERVED}
        for meter in (*self._counters.values(), *self._histograms.values()):
            registry.register(meter)

    def opened(self, opened: Opened) -> None:
        """Count an opening."""
        agent = opened.agent
        self._histograms[RESTORE].observe(opened.seconds, agent)
        self._counters[RESTORED].add(opened.restored, agent)
        for spec in (COMMITS, REOPENINGS):
            self._counters[spec].add(0, agent, str(opened.partition))
        for why in _WHY:
            self._counters[TIMES].add(0, agent, why)
        for reason in Reason:
            # Created at 0: to Prometheus, a series that begins at 500 has not risen.
            self._counters[DEAD].add(0, agent, reason.value)

    def committed(self, commit: Committed) -> None:
        """Count a commit."""
        self._histograms[BATCH].observe(commit.records, commit.agent)
        self._histograms[WAITED].observe(commit.waited, commit.agent)
        self._histograms[TRANSACTION].observe(commit.seconds, commit.agent)
        self._counters[COMMITS].add(1, commit.agent, str(commit.partition))
        for reason, times in commit.dead.items():
            self._counters[DEAD].add(times, commit.agent, reason)
        for why, name in _WHY.items():
            self._counters[TIMES].add(commit.notes.counts.get(name, 0), commit.agent, why)

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:  # noqa: ARG002
        """Count an interruption that is followed by another opening."""
        if not final:
            self._counters[REOPENINGS].add(1, agent, str(partition))


class EngineCollector(Collector):
    """Reads the tasks' state at each scrape."""

    def __init__(self, engine: TaskGroup) -> None:
        self._engine = engine
        self._level: dict[Labels, float] = {}
        """When a partition was last seen without anything left to do, in seconds since 1970."""
        self._heard: dict[Labels, float] = {}
        self._still = Standstill()

    def collect(self) -> Iterator[Metric]:
        """Return how all tasks of this worker are doing."""
        statuses, now = self._engine.statuses(), time.time()
        lags = [lag for status in statuses for lag in self._lags(status, now)]
        blocked = [lag for status in statuses for lag in self._held_back(status, now)]
        self._forget({place for place, _, _ in lags})
        yield filled(LAG, [(place, records) for place, records, _ in lags])
        yield filled(LAG_SECONDS, [(place, seconds) for place, _, seconds in lags])
        yield filled(HELD_BACK, [(place, records) for place, records, _ in blocked])
        yield filled(HELD_BACK_SECONDS, [(place, seconds) for place, _, seconds in blocked])
        yield filled(OWNER, [(_task(s), float(s.phase is Phase.RUNNING)) for s in statuses])
        yield filled(UNCOMMITTED, [(_task(s), s.oldest or 0.0) for s in statuses])
        yield filled(READY, [((), float(not self._engine.trouble()))])
        yield filled(BUILD, [(_versions(), 1.0)])

    def _lags(self, status: TaskStatus, now: float) -> Iterable[tuple[Labels, float, float]]:
        """Return how many records and seconds each input whose end is known is behind.

        Uncommitted records came after the last committed one, and after the last time that nothing
        was left to do: the wait can have begun at the later of the two.
        """
        for topic, position in status.positions.items():
            end = status.ends.get(topic)
            if end is None:
                continue
            place = status.agent, topic, str(status.partition)
            if end <= position:
                self._level[place] = now
                yield place, 0.0, 0.0
            else:
                yield place, float(end - position), max(now - self._begun(place, status, now), 0.0)

    def _held_back(self, status: TaskStatus, now: float) -> Iterable[tuple[Labels, float, float]]:
        """Return how many records of each input wait for an open transaction, and for how long."""
        for topic, written in status.written.items():
            end = status.ends.get(topic)
            if end is None or written is None:
                continue
            place = status.agent, topic, str(status.partition)
            waited = self._still.seconds(place, end, written, now)
            yield place, float(max(written - end, 0)), waited

    def _begun(self, place: Labels, status: TaskStatus, now: float) -> float:
        """Return when the wait can have begun; before anything is known, when it was first seen."""
        heard = self._heard.setdefault(place, now)
        latest = status.times.get(place[1])
        times = [] if latest is None else [latest / 1000]
        times += [self._level[place]] if place in self._level else []
        return max(times, default=heard)

    def _forget(self, but: set[Labels]) -> None:
        """Forget partitions that other workers hold now."""
        self._level = {place: at for place, at in self._level.items() if place in but}
        self._heard = {place: at for place, at in self._heard.items() if place in but}
        self._still.forget(but)


def _task(status: TaskStatus) -> Labels:
    return status.agent, str(status.partition)


def _versions() -> Labels:
    return version("hedged-bandits"), platform.python_version(), version("aiokafka")


def observe(registry: CollectorRegistry, engine: TaskGroup) -> None:
    """Register an engine's metrics; call this before the first assignment."""
    engine.observers.listeners.append(EngineObserver(registry))
    registry.register(EngineCollector(engine))
