"""The totals that the ensemble learner keeps, held against what can be counted in the topics."""

import re

import numpy as np

from agents.totals import WAITING, EnsembleTotals
from audit.findings import Findings
from audit.join import Joined
from audit.observed import (
    DIAGNOSED,
    EVICTED_,
    EXPIRED_,
    GONE,
    OPEN,
    PARKED,
    SETTLED,
    Evidence,
)
from audit.recording.columns import count
from learners.arrays.types import MISSING, Bools, Ints
from learners.join import COUNTERS
from streams.kafka.topics import ENSEMBLE

_PARKED_LABELS = "label_parked-parked_label_settled-parked_label_unknown"


def audit_counters(evidence: Evidence, joined: Joined, findings: Findings) -> Ints:
    """Compare all totals that the topics determine; return the totals as they should be."""
    note = "" if evidence.whole else "not compared: the start of its topics is gone"
    held = {**evidence.head, **{f"now_{k}": n for k, n in evidence.totals.waiting.items()}}
    expected = {**_inputs(evidence), **_outcomes(evidence, joined), **_entries(evidence)}
    expected["label_duplicate"] = _repeated(expected)
    tally = _tally(evidence, joined)
    wrong = sum(_sum(held, name) != number for name, number in expected.items())
    wrong += int((tally != evidence.totals.tally).sum())
    findings.table(
        "ensemble counters", evidence.place(ENSEMBLE), values=len(expected) + len(tally),
        differing=0 if note else wrong, note=note,
    )  # fmt: skip
    return _row({**held, **expected}, expected[_PARKED_LABELS], tally)


def _sum(held: dict[str, int], names: str) -> int:
    """Return a sum and difference of counts, as `a+b-c` names it."""
    found = re.findall(r"([+-]?)(\w+)", names)
    return sum(-held[name] if sign == "-" else held[name] for sign, name in found)


def _row(counts: dict[str, int], parked: int, tally: Ints) -> Ints:
    """Return the totals that these counts are; what is parked decides how many ever were."""
    resolved = counts["parked_label_settled"] + counts["parked_label_unknown"]
    known = {**{name: counts[name] for name in COUNTERS}, "label_parked": parked + resolved}
    return EnsembleTotals.of(known, {name: counts[f"now_{name}"] for name in WAITING}, tally).row


def _sum_of(kind: str) -> str:
    return "+".join(name for name in COUNTERS if name.startswith(kind))


def _inputs(evidence: Evidence) -> dict[str, int]:
    """Every event adds one to exactly one count; what was refused is in the dead letters."""
    topics = evidence.topics
    kinds = {"prediction_": topics.predictions, "label_": topics.labels}
    if topics.contextual:
        kinds["context_"] = topics.contexts
    expected = {} if topics.contextual else {_sum_of("context_") + "+parked_context_unknown": 0}
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
    settled = int(joined.settled.sum())
    expected = {
        "diagnosed_complete": int((diagnosed & complete).sum()),
        "diagnosed_incomplete": int((diagnosed & ~complete).sum()),
        "settled": settled,
        "label_matched+parked_label_settled": settled,
    }
    if not evidence.head.get("forgotten"):
        expected["expired"] = int((status == EXPIRED_).sum())
        expected["evicted"] = int((status == EVICTED_).sum())
    return expected


def _entries(evidence: Evidence) -> dict[str, int]:
    """Return what waits, and what is remembered, by the entries themselves."""
    status, label = evidence.pending.status, evidence.pending.label
    waiting = ((status == PARKED) | (status == OPEN)) & (label != MISSING)
    found = {"now_parked": PARKED, "now_open": OPEN, "now_diagnosed": DIAGNOSED}
    return {
        **{name: int((status == code).sum()) for name, code in found.items()},
        _PARKED_LABELS: int(waiting.sum()),
        "settled+expired+evicted-forgotten": int((status >= SETTLED).sum()),
    }


def _repeated(expected: dict[str, int]) -> int:
    """Return how many labels repeated another: all that nothing else became of."""
    refused = [f"label_{reason}" for reason in ("conflict", "expired", "evicted", "pending_full")]
    known = ("settled", _PARKED_LABELS, "parked_label_unknown", *refused)
    return expected[_sum_of("label_")] - sum(expected[name] for name in known)


def _tally(evidence: Evidence, joined: Joined) -> Ints:
    """Count disagreements, and diagnoses by label, as `EnsembleLearner.tally`."""
    K = len(evidence.settings.labels)
    made = joined.diagnosis[_diagnosed(evidence, joined) & (joined.diagnosis >= 0)]
    columns = evidence.logs.diagnoses.columns
    said = columns["said"][made]
    lowest = np.where(said == MISSING, K, said).min(axis=1, initial=K)
    disagreed = (lowest < said.max(axis=1, initial=MISSING)).sum()
    return np.array([disagreed, *np.bincount(columns["label"][made], minlength=K)], np.int64)


def latest_again(evidence: Evidence, joined: Joined) -> Ints | None:
    """Return when the latest diagnosis was made, and its shares."""
    made = joined.diagnosis[_diagnosed(evidence, joined) & (joined.diagnosis >= 0)]
    if not len(made):
        return None
    columns = evidence.logs.diagnoses.columns
    last = made[columns["offset"][made].argmax()]
    return np.array([columns["at"][last], *columns["parts"][last]], np.int64)


def audit_latest(evidence: Evidence, again: Ints | None, findings: Findings) -> None:
    """Compare the shares of the latest diagnosis."""
    held = evidence.state(ENSEMBLE).counts["latest"].items()[1]
    note = "" if evidence.whole else "not compared: the start of its topics is gone"
    ours, theirs = held.reshape(-1), np.zeros(0, np.int64) if again is None else again
    same = len(ours) == len(theirs)
    differing = int((ours != theirs).sum()) if same else abs(len(ours) - len(theirs))
    findings.table(
        "ensemble latest", evidence.place(ENSEMBLE), values=len(ours),
        differing=0 if note else differing, note=note,
    )  # fmt: skip


def _diagnosed(evidence: Evidence, joined: Joined) -> Bools:
    """Mark the instances that were diagnosed when the state was looked at."""
    topic = evidence.topics.predictions
    columns = evidence.logs.predictions.columns
    read = count(columns["id"][evidence.within(topic, columns)], evidence.size) > 0
    status = evidence.pending.status
    forgotten = ((status == GONE) | (status == PARKED)) & read & (joined.diagnosis >= 0)
    return np.asarray((status >= DIAGNOSED) | forgotten)
