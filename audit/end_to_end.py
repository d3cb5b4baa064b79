"""An audit from end to end: read, recompute, compare, partition by partition.

1. The state of every agent, from its changelogs, with the input positions that belong to it.
2. All topics, from their start to their present end.
3. Local learners, the join, what was settled, the counts and the dead letters.
4. The metrics of all partitions together, of the state and of workers.

A difference found while the stream is moving may come from the reading itself: the state may have
been read between two of its topics, or its changelog compacted meanwhile. So the partition is read
again, and a difference counts only if it persists.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agents.roles import specs
from agents.stored_state import exact, find_conflicts
from audit.dead_letters import audit_refusals
from audit.ensemble_totals import audit_counters, audit_latest, latest_again
from audit.findings import Findings, Kind
from audit.join import JoinAudit
from audit.live_state import read_state
from audit.local_learner import LocalAudit
from audit.metric_values import audit_metrics, read_pages
from audit.observed import Observed
from audit.partition_tables import PartitionTables, live_tables
from audit.recording.partition_logs import read_partition
from audit.recording.reader import Progress, Recording, opened, silent
from audit.settling import SettlingAudit, context_misfits, ensemble_tables
from settings.model import Settings
from streams.kafka.client.reader import TopicMissingError
from streams.kafka.topics import ENSEMBLE, Topics, local

_ATTEMPTS = 4


@dataclass(slots=True)
class Report:
    """What an audit found, and the time from which its answer is complete."""

    findings: Findings
    partitions: int = 0
    cuts: list[dict[str, Any]] = field(default_factory=list)
    vouched_from: int | None = None

    def figures(self) -> dict[str, int]:
        """Return the figures; `lost`, `double` and `differing` must be 0."""
        totals = {str(kind): self.findings.total(kind) for kind in Kind}
        tables = self.findings.tables.values()
        return {
            **totals,
            "partitions": self.partitions,
            "tables": len(tables),
            "values_compared": sum(check.values for check in tables),
            **dict(sorted(self.findings.counts.items())),
        }

    def report(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "clean": self.findings.clean,
            "figures": self.figures(),
            "findings": [
                {"kind": str(f.kind), "what": f.what, "where": f.where, "times": f.times}
                for f in self.findings.list()
            ],
            "tables": {
                name: {"values": check.values, "differing": check.differing, "note": check.note}
                for name, check in self.findings.tables.items()
            },
            "notes": list(self.findings.notes),
            "vouches": {"from_ms": self.vouched_from, "cut_topics": self.cuts},
        }


async def audit(
    settings: Settings, progress: Progress = silent, workers: Sequence[str] = ()
) -> Report:
    """Audit all partitions of an ensemble, and the metrics of the workers at some addresses.

    Whatever the topics hold is reported, never raised: anyone may have written there.
    """
    report, parts = Report(Findings()), []
    secret = settings.worker.web_token
    token = "" if secret is None or not workers else secret.read()
    before = await read_pages(workers, time.time(), token)
    async with opened(settings, "audit", progress, lenient=True) as recording:
        if await _of_other_settings(recording, settings, report.findings):
            return report
        for partition in await _partitions(recording, settings):
            observed, findings, tables = await _audit_partition(recording, settings, partition)
            report.findings.merge(findings)
            report.partitions += 1
            parts.append((tables, _live(observed, report.findings)))
            _note_removed(report, observed)
    for topic, partition in sorted(recording.missing):
        report.findings.lost("topic partition that does not exist", f"{topic}/{partition}", 1)
    after = await read_pages(workers, time.time(), token)
    pages = list(zip(before, after, strict=True))
    recomputed = [expected for expected, _ in parts if expected is not None]
    live = [actual for _, actual in parts if actual is not None]
    if len(recomputed) == len(live) == len(parts):
        with report.findings.reporting("metrics of the state", "all partitions"):
            audit_metrics(settings, recomputed, live, report.findings, pages)
    return report


async def _of_other_settings(recording: Recording, settings: Settings, findings: Findings) -> bool:
    """Report state that was taught under other settings: its numbers mean something else here."""
    topics = Topics.of(settings)
    sizes = {}
    for name in (topics.changelog(agent) for agent in topics.agents):
        with suppress(TopicMissingError):  # which is reported where it is read
            sizes[name] = len(await recording.partitions(name))
    for changelog, partition, owner, keys in await find_conflicts(settings, sizes):
        where = f"{changelog}/{partition}"
        if owner is not None:
            findings.differing("owner of the state", where, 1)
        for key in exact(keys):
            findings.differing(f"setting {key}", where, 1)
    if not findings.clean:
        findings.note(
            "The state was taught under other settings, so nothing was compared: audit with the"
            " settings of the workers."
        )
    return not findings.clean


async def _partitions(recording: Recording, settings: Settings) -> list[int]:
    """Return the partitions that there are, or that there should be."""
    declared = set(range(settings.topics.partitions))
    try:
        return sorted(declared | set(await recording.partitions(Topics.of(settings).predictions)))
    except TopicMissingError:
        return sorted(declared)


async def _audit_partition(
    recording: Recording, settings: Settings, partition: int
) -> tuple[Observed, Findings, PartitionTables | None]:
    """Audit a partition; read it again if something differs and the stream has moved meanwhile."""
    observed = await gather(recording, settings, partition)
    findings, tables = recompute(observed)
    for _ in range(_ATTEMPTS):
        if findings.clean:
            break
        later = await gather(recording, settings, partition)
        if _ends(later) == _ends(observed):
            break
        observed = later
        findings, tables = recompute(observed)
    return observed, findings, tables


def _ends(observed: Observed) -> list[dict[str, int]]:
    return [state.ends for state in observed.states.values()]


async def gather(recording: Recording, settings: Settings, partition: int) -> Observed:
    """Read states first, then topics: what a state refers to is then within the topics."""
    states = {
        spec.name: await read_state(recording, settings, spec, partition)
        for spec in specs(settings)
    }
    return Observed(await read_partition(recording, settings, partition), states)


def _live(observed: Observed, findings: Findings) -> PartitionTables | None:
    """Return the state as read, or None if no figures can be computed from it."""
    with findings.reporting("figures of the state", observed.place(ENSEMBLE)):
        return live_tables(observed)
    return None


def recompute(observed: Observed) -> tuple[Findings, PartitionTables | None]:
    """Compare what was read; return the state as it should be, None if that cannot be told."""
    findings = Findings()
    tables = PartitionTables(observed.logs.partition, observed.whole)
    complete = _recompute(observed, findings, tables)
    for agent, state in observed.states.items():
        for problem, times in state.problems.items():
            findings.differing(problem, observed.place(agent), times)
    return findings, tables if complete else None


def _recompute(observed: Observed, findings: Findings, tables: PartitionTables) -> bool:
    """Do all parts of the audit of a partition; return whether all could be done."""
    where, complete = observed.place(ENSEMBLE), True
    with findings.reporting("dead letters", observed.place("dead")):
        audit_refusals(observed, findings)
    for name in observed.settings.learners:
        reporting = findings.reporting(f"learner {name}", observed.place(local(name)))
        with reporting:
            tables.totals[name] = LocalAudit(observed, name, findings).run()
        complete &= name in tables.totals
    with findings.reporting("join", where):
        joined = JoinAudit(observed, findings).run()
        with findings.reporting("what was learned", where):
            learner = SettlingAudit(observed, joined, findings).run()
            tables.tables, tables.window = ensemble_tables(learner), learner.window
        with findings.reporting("counters", where):
            tables.ensemble = audit_counters(observed, joined, findings)
            # What the topics determine of these was compared with the other counters.
            tables.amended = observed.amendments.row
            tables.latest = latest_again(observed, joined)
            audit_latest(observed, tables.latest, findings)
        with findings.reporting("contexts", where):
            misfits = context_misfits(observed)
            findings.differing("context cubes of diagnoses", where, misfits)
    return complete and bool(tables.tables) and tables.ensemble is not None


def _note_removed(report: Report, observed: Observed) -> None:
    """Note what retention has removed."""
    since = observed.logs.vouched_from
    if since is not None:
        report.vouched_from = max(report.vouched_from or 0, since)
    for topic, log in observed.logs.by_topic().items():
        span = observed.logs.spans[topic]
        if span.cut:
            cut = {"topic": topic, "partition": span.partition, "offset": span.start}
            report.cuts.append({**cut, "time_ms": log.first_time})
