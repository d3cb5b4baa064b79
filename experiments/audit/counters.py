"""The counts that the join keeps, held against what can be counted in the topics."""

import numpy as np

from experiments.audit.evidence import DIAGNOSED, EVICTED_, EXPIRED_, GONE, PARKED, Evidence
from experiments.audit.findings import Findings
from experiments.audit.join import Joined
from experiments.columns import count
from learners.ledger import COUNTERS
from learners.types import Bools, Ints
from streams.topics import ENSEMBLE


def audit_counters(evidence: Evidence, joined: Joined, findings: Findings) -> None:
    """Compare all counts that the topics determine."""
    head = evidence.head
    note = "" if evidence.whole else "not compared: the start of its topics is gone"
    expected = {} if note else {**_inputs(evidence), **_outcomes(evidence, joined)}
    held = {name: sum(head.get(part, 0) for part in name.split("+")) for name in expected}
    wrong = sum(held[name] != number for name, number in expected.items())
    findings.table(
        "ensemble counters", evidence.place(ENSEMBLE), values=len(expected), differing=wrong,
        note=note,
    )  # fmt: skip


def _sum_of(kind: str) -> str:
    return "+".join(name for name in COUNTERS if name.startswith(kind))


def _inputs(evidence: Evidence) -> dict[str, int]:
    """Every event adds one to exactly one count; what was refused is in the dead letters."""
    topics = evidence.topics
    kinds = {"prediction_": topics.predictions, "label_": topics.labels}
    if topics.contextual:
        kinds["context_"] = topics.contexts
    expected = {}
    for kind, topic in kinds.items():
        read = evidence.within(topic, evidence.log(topic).columns)
        expected[_sum_of(kind)] = int(read.sum())
        expected[f"{kind}pending_full"] = len(_read(evidence, topic, "pending_full"))
    for reason in ("conflict", "expired", "evicted"):
        expected[f"label_{reason}"] = len(_read(evidence, topics.labels, reason))
    expected["parked_label_unknown"] = len(_read(evidence, topics.labels, "unknown"))
    return expected


def _read(evidence: Evidence, topic: str, reason: str) -> Ints:
    """Return the refused records of a topic that the agent had read by then.

    A record that was parked is refused long after it was read, perhaps after the state was looked
    at: then the entry still holds it, and it does not count.
    """
    refused = evidence.refused(topic, reason)
    refused = refused[refused < evidence.position(topic)]
    if reason != "unknown":
        return refused
    columns = evidence.log(topic).columns
    ids = columns["id"][np.isin(columns["offset"], refused)]
    return np.asarray(refused[evidence.pending.label[ids] < 0])


def _outcomes(evidence: Evidence, joined: Joined) -> dict[str, int]:
    """Return what became of instances; what was forgotten is known by its diagnosis only."""
    status = evidence.pending.status
    diagnosed = _diagnosed(evidence, joined)
    complete = np.zeros(evidence.size, np.bool_)
    columns = evidence.logs.diagnoses.columns
    complete[columns["id"]] = columns["complete"]
    expected = {
        "diagnosed_complete": int((diagnosed & complete).sum()),
        "diagnosed_incomplete": int((diagnosed & ~complete).sum()),
        "settled": int(joined.settled.sum()),
    }
    if not evidence.head.get("forgotten"):
        expected["expired"] = int((status == EXPIRED_).sum())
        expected["evicted"] = int((status == EVICTED_).sum())
    return expected


def _diagnosed(evidence: Evidence, joined: Joined) -> Bools:
    """Mark the instances that were diagnosed when the state was looked at."""
    topic = evidence.topics.predictions
    columns = evidence.logs.predictions.columns
    read = count(columns["id"][evidence.within(topic, columns)], evidence.size) > 0
    status = evidence.pending.status
    forgotten = ((status == GONE) | (status == PARKED)) & read & (joined.diagnosis >= 0)
    return np.asarray((status >= DIAGNOSED) | forgotten)
