"""An audit from end to end: read, recompute, compare, partition by partition.

1. The state of every agent, from its changelogs, with the input positions that belong to it.
2. All topics, from their start to their present end.
3. Local learners, the join, what was settled, the counts and the dead letters.
4. The metrics of all partitions together, of the state and of workers.

A difference that is found while the stream moves may be one of the look and not of the thing: the
state may have been caught between two of its topics, or its changelog been compacted meanwhile. So
it is looked at again, and counts only if it stays.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agents.roles import specs
from agents.stored_state import exact, find_conflicts
from audit.ensemble_totals import audit_counters, audit_latest, latest_again
from audit.findings import Findings, Kind
from audit.join import JoinAudit
from audit.live_state import read_state
from audit.local_learner import LocalAudit
from audit.metric_values import audit_metrics, read_pages
from audit.observed import Evidence
from audit.recomputed import Again, live
from audit.recording.partition_logs import read_partition
from audit.recording.reader import Progress, Recording, opened, silent
from audit.refusals import audit_refusals
from audit.settling import SettlingAudit, context_misfits, recomputed
from settings.model import Settings
from streams.kafka.client.reader import TopicMissingError
from streams.kafka.topics import ENSEMBLE, Topics, local

_LOOKS = 4


@dataclass(slots=True)
class Report:
    """What an audit found, and from where on it vouches."""

    findings: Findings
    partitions: int = 0
    cuts: list[dict[str, Any]] = field(default_factory=list)
    vouched_from: int | None = None

    def figures(self) -> dict[str, int]:
        """Return the numbers to watch: all three must be 0."""
        found = {str(kind): self.findings.total(kind) for kind in Kind}
        tables = self.findings.tables.values()
        return {
            **found,
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

    Whatever the topics hold is reported, never raised: anybody may have written there.
    """
    report, parts = Report(Findings()), []
    before = await read_pages(workers, time.time())
    async with opened(settings, "audit", progress, lenient=True) as recording:
        if await _of_other_settings(recording, settings, report.findings):
            return report
        for partition in await _partitions(recording, settings):
            evidence, findings, again = await _look(recording, settings, partition)
            report.findings.merge(findings)
            report.partitions += 1
            parts.append((again, _live(evidence, report.findings)))
            _vouch(report, evidence)
    for topic, partition in sorted(recording.missing):
        report.findings.lost("topic partition that does not exist", f"{topic}/{partition}", 1)
    after = await read_pages(workers, time.time())
    pages = list(zip(before, after, strict=True))
    due = [again for again, _ in parts if again is not None]
    found = [seen for _, seen in parts if seen is not None]
    if len(due) == len(found) == len(parts):
        with report.findings.reporting("metrics of the state", "all partitions"):
            audit_metrics(settings, due, found, report.findings, pages)
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


async def _look(
    recording: Recording, settings: Settings, partition: int
) -> tuple[Evidence, Findings, Again | None]:
    """Audit a partition; look again if something differs and the stream has moved meanwhile."""
    evidence = await gather(recording, settings, partition)
    findings, again = recompute(evidence)
    for _ in range(_LOOKS):
        if findings.clean:
            break
        later = await gather(recording, settings, partition)
        if _ends(later) == _ends(evidence):
            break
        evidence = later
        findings, again = recompute(evidence)
    return evidence, findings, again


def _ends(evidence: Evidence) -> list[dict[str, int]]:
    return [state.ends for state in evidence.states.values()]


async def gather(recording: Recording, settings: Settings, partition: int) -> Evidence:
    """Read states first, then topics: whatever a state speaks of is then within the topics."""
    states = {
        spec.name: await read_state(recording, settings, spec, partition)
        for spec in specs(settings)
    }
    return Evidence(await read_partition(recording, settings, partition), states)


def _live(evidence: Evidence, findings: Findings) -> Again | None:
    """Return the state as it was found, None if no figures can be made of it."""
    with findings.reporting("figures of the state", evidence.place(ENSEMBLE)):
        return live(evidence)
    return None


def recompute(evidence: Evidence) -> tuple[Findings, Again | None]:
    """Compare what was read; return the state as it should be, None if that cannot be told."""
    findings = Findings()
    again = Again(evidence.logs.partition, evidence.whole)
    done = _recompute(evidence, findings, again)
    for agent, state in evidence.states.items():
        for problem, times in state.problems.items():
            findings.differing(problem, evidence.place(agent), times)
    return findings, again if done else None


def _recompute(evidence: Evidence, findings: Findings, again: Again) -> bool:
    """Do all parts of the audit of a partition; return whether all could be done."""
    where, done = evidence.place(ENSEMBLE), True
    with findings.reporting("dead letters", evidence.place("dead")):
        audit_refusals(evidence, findings)
    for name in evidence.settings.learners:
        reporting = findings.reporting(f"learner {name}", evidence.place(local(name)))
        with reporting:
            again.totals[name] = LocalAudit(evidence, name, findings).run()
        done &= name in again.totals
    with findings.reporting("join", where):
        joined = JoinAudit(evidence, findings).run()
        with findings.reporting("what was learned", where):
            learner = SettlingAudit(evidence, joined, findings).run()
            again.tables, again.window = recomputed(learner), learner.window
        with findings.reporting("counters", where):
            again.ensemble = audit_counters(evidence, joined, findings)
            again.latest = latest_again(evidence, joined)
            audit_latest(evidence, again.latest, findings)
        with findings.reporting("contexts", where):
            misfits = context_misfits(evidence)
            findings.differing("context cubes of diagnoses", where, misfits)
    return done and bool(again.tables) and again.ensemble is not None


def _vouch(report: Report, evidence: Evidence) -> None:
    """Note what retention has removed."""
    since = evidence.logs.vouched_from
    if since is not None:
        report.vouched_from = max(report.vouched_from or 0, since)
    for topic, log in evidence.logs.by_topic().items():
        span = evidence.logs.spans[topic]
        if span.cut:
            cut = {"topic": topic, "partition": span.partition, "offset": span.start}
            report.cuts.append({**cut, "time_ms": log.first_time})
