"""Dead letters: one for each record that could not be used, and none for any other."""

from audit.findings import Findings
from audit.observed import Observed
from learners.join import Reason

AFTER_READING = {*map(str, Reason), "rule_failed"}
"""Reasons to refuse a record although it could be read."""


def audit_refusals(observed: Observed, findings: Findings) -> None:
    """Compare the dead letters with the records that the agents had to refuse."""
    for topic in observed.readers():
        _audit_topic(observed, findings, topic)
    dead = observed.logs.dead.values()
    findings.count("dead_letters", sum(map(len, dead)))
    unreadable = sum(len(log.bad) for log in dead), len(observed.logs.diagnoses.bad)
    findings.differing("dead letters that cannot be read", observed.place("dead"), unreadable[0])
    findings.differing("diagnoses that cannot be read", observed.place("ensemble"), unreadable[1])


def _audit_topic(observed: Observed, findings: Findings, topic: str) -> None:
    log, letters = observed.log(topic), observed.logs.reasons.get(topic, {})
    bad, where = set(log.bad), observed.place(topic)
    position = observed.position(topic)
    if not any(map(observed.cut, observed.topics.deadletters)):
        missing = sum(offset < position and offset not in letters for offset in bad)
        findings.lost("dead letters", where, missing)
    findings.double("dead letters", where, sum(len(why) - 1 for why in letters.values()))
    good = set(log.columns["offset"].tolist())
    wrong = sum(
        offset in good and not AFTER_READING.issuperset(why) for offset, why in letters.items()
    )
    findings.differing("dead letters of good records", where, wrong)
    start = observed.logs.spans[topic].start
    nowhere = sum(o >= start and o not in good and o not in bad for o in letters)
    findings.differing("dead letters of no record", where, nowhere)
    findings.count("bad_records", len(bad))
