"""Dead letters: one for each record that could not be used, none for any other."""

from audit.findings import Findings
from audit.observed import Evidence
from learners.join import Reason

AFTER_READING = {*map(str, Reason), "rule_failed"}
"""Reasons to refuse a record that could be read."""


def audit_refusals(evidence: Evidence, findings: Findings) -> None:
    """Hold the dead letters against the records that the agents had to refuse."""
    for topic in evidence.readers():
        _audit_topic(evidence, findings, topic)
    findings.count("dead_letters", len(evidence.logs.dead))
    unreadable = len(evidence.logs.dead.bad), len(evidence.logs.diagnoses.bad)
    findings.differing("dead letters that cannot be read", evidence.place("dead"), unreadable[0])
    findings.differing("diagnoses that cannot be read", evidence.place("ensemble"), unreadable[1])


def _audit_topic(evidence: Evidence, findings: Findings, topic: str) -> None:
    log, letters = evidence.log(topic), evidence.logs.dead.reasons.get(topic, {})
    bad, where = set(log.bad), evidence.place(topic)
    position = evidence.position(topic)
    if not evidence.cut(evidence.topics.deadletter):
        missing = sum(offset < position and offset not in letters for offset in bad)
        findings.lost("dead letters", where, missing)
    findings.double("dead letters", where, sum(len(why) - 1 for why in letters.values()))
    good = set(log.columns["offset"].tolist())
    wrong = sum(
        offset in good and not AFTER_READING.issuperset(why) for offset, why in letters.items()
    )
    findings.differing("dead letters of good records", where, wrong)
    start = evidence.logs.spans[topic].start
    nowhere = sum(o >= start and o not in good and o not in bad for o in letters)
    findings.differing("dead letters of no record", where, nowhere)
    findings.count("bad_records", len(bad))
