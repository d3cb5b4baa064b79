"""The totals that the ensemble learner keeps, compared with what can be counted in the topics."""

import re

import numpy as np

from agents.totals import WAITING, EnsembleTotals
from audit.findings import Findings
from audit.join import Joined
from audit.observed import (
    DIAGNOSED,
    EVICTED_STATE,
    EXPIRED_STATE,
    GONE,
    OPEN,
    PARKED,
    SETTLED,
    Observed,
)
from audit.recording.columns import count
from learners.arrays.types import MISSING, Bools, Ints
from learners.join import AMENDMENTS, COUNTERS
from learners.join.entries import SettledEntry
from streams.kafka.topics import ENSEMBLE

_PARKED_LABELS = (
    "label_parked+amendment_parked-withdrawal_parked-parked_label_settled-parked_label_unknown"
)
_REFUSED = ("conflict", "expired", "evicted", "pending_full")


def audit_counters(observed: Observed, joined: Joined, findings: Findings) -> Ints:
    """Compare all totals that the topics determine; return the totals as they should be."""
    note = "" if observed.whole else "not compared: the start of its topics is gone"
    counters = {**observed.head, **{f"now_{k}": n for k, n in observed.totals.waiting.items()}}
    counters |= {"now_amendable": observed.amendments.amendable, "bytes": observed.amendments.size}
    expected = {**_inputs(observed), **_outcomes(observed, joined), **_entries(observed)}
    if not observed.logs.labels.columns["amends"].any():
        # If some labels were amended, only the worker knows which of several came first.
        expected["label_duplicate"] = _repeated(expected)
    tally = _tally(observed, joined)
    wrong = {name: _sum(counters, name) != number for name, number in expected.items()}
    corrections = [
        differs for name, differs in wrong.items() if set(_terms(name)) <= _OF_CORRECTIONS
    ]
    differing = sum(wrong.values()) - sum(corrections)
    differing += int((tally != observed.totals.tally).sum())
    where = observed.place(ENSEMBLE)
    findings.table(
        "ensemble counters", where, values=len(wrong) - len(corrections) + len(tally),
        differing=0 if note else differing, note=note,
    )  # fmt: skip
    findings.table(
        "ensemble corrections", where, values=len(corrections),
        differing=0 if note else sum(corrections), note=note,
    )  # fmt: skip
    return _row({**counters, **expected}, expected[_PARKED_LABELS], tally)


_OF_CORRECTIONS = {*AMENDMENTS, "now_amendable", "bytes"}


def _terms(names: str) -> dict[str, str]:
    """Return the counts that an expression such as `a+b-c` names, each with its sign."""
    return {name: sign for sign, name in re.findall(r"([+-]?)(\w+)", names)}


def _sum(counters: dict[str, int], names: str) -> int:
    """Return the sum or difference of counts that an expression names."""
    terms = _terms(names).items()
    return sum(-counters[name] if sign == "-" else counters[name] for name, sign in terms)


def _row(counts: dict[str, int], parked: int, tally: Ints) -> Ints:
    """Return the totals of these counts; how many labels ever were parked follows from the rest."""
    resolved = counts["parked_label_settled"] + counts["parked_label_unknown"]
    resolved += counts["withdrawal_parked"] - counts["amendment_parked"]
    counted = {**{name: counts[name] for name in COUNTERS}, "label_parked": parked + resolved}
    return EnsembleTotals.of(counted, {name: counts[f"now_{name}"] for name in WAITING}, tally).row


def _sum_of(kind: str) -> str:
    return "+".join(name for name in (*COUNTERS, *AMENDMENTS) if name.startswith(kind))


def _inputs(observed: Observed) -> dict[str, int]:
    """Every event adds one to exactly one count; what was refused is in the dead letters."""
    topics = observed.topics
    kinds = {"prediction_": topics.predictions}
    if topics.contextual:
        kinds["context_"] = topics.contexts
    expected = {} if topics.contextual else {_sum_of("context_") + "+parked_context_unknown": 0}
    for kind, topic in kinds.items():
        read = observed.within(topic, observed.log(topic).columns)
        expected[_sum_of(kind)] = int(read.sum())
        expected[f"{kind}pending_full"] = len(_read(observed, topic, "pending_full"))
    # A parked label of an erased patient waited in vain too, and does not become a dead letter.
    erased = int((observed.erased(ENSEMBLE) > 0).sum())
    expected["parked_label_unknown"] = len(_read(observed, topics.labels, "unknown")) + erased
    return expected | _labels(observed)


def _labels(observed: Observed) -> dict[str, int]:
    """Return the counts of labels, and of those that amend or withdraw one."""
    topic = observed.topics.labels
    columns = observed.log(topic).columns
    read, amends = observed.within(topic, columns), columns["amends"]
    expected = {
        _sum_of("label_"): int((read & ~amends).sum()),
        f"{_sum_of('amendment_')}+{_sum_of('withdrawal_')}": int((read & amends).sum()),
    }
    for reason in (*_REFUSED, "final"):
        refused = np.isin(columns["offset"], _read(observed, topic, reason))
        expected[f"label_{reason}"] = int((refused & ~amends).sum())
        if reason != "conflict":
            of = "amendment_final+withdrawal_final" if reason == "final" else f"amendment_{reason}"
            expected[of] = int((refused & amends).sum())
    return expected


def _read(observed: Observed, topic: str, reason: str) -> Ints:
    """Return the refused records of a topic that the agent had read by then.

    A record that was parked is refused long after it was read, perhaps after the state was looked
    at: then the entry still holds it, and it does not count.
    """
    refused = observed.refused(topic, reason)
    refused = refused[refused < observed.position(topic)]
    if reason != "unknown":
        return refused
    columns = observed.log(topic).columns
    ids = columns["id"][np.isin(columns["offset"], refused)]
    return np.asarray(refused[observed.pending.label[ids] < 0])


def _outcomes(observed: Observed, joined: Joined) -> dict[str, int]:
    """Return what became of instances; what was forgotten is known by its diagnosis only."""
    status = observed.pending.status
    diagnoses = diagnosed(observed, joined)
    complete = np.zeros(observed.size, np.bool_)
    columns = observed.logs.diagnoses.columns
    complete[columns["id"]] = columns["complete"]
    settled = int(joined.settled.sum())
    expected = {
        "diagnosed_complete": int((diagnoses & complete).sum()),
        "diagnosed_incomplete": int((diagnoses & ~complete).sum()),
        "settled": settled,
        "label_matched+amendment_matched+parked_label_settled": settled,
        "unlearned": int((joined.amended & joined.settled & (joined.taught != joined.final)).sum()),
    }
    if not observed.head.get("forgotten"):
        expected["expired"] = int((status == EXPIRED_STATE).sum())
        expected["evicted"] = int((status == EVICTED_STATE).sum())
    return expected


def _entries(observed: Observed) -> dict[str, int]:
    """Return what waits, and what is remembered, according to the entries."""
    status, label = observed.pending.status, observed.pending.label
    waiting = ((status == PARKED) | (status == OPEN)) & (label != MISSING)
    codes = {"now_parked": PARKED, "now_open": OPEN, "now_diagnosed": DIAGNOSED}
    settled = [e for e in observed.pending.entries.values() if isinstance(e, SettledEntry)]
    return {
        **{name: int((status == code).sum()) for name, code in codes.items()},
        "now_amendable": len(settled),
        "bytes": sum(len(entry.diagnosed) for entry in settled),
        _PARKED_LABELS: int(waiting.sum()),
        "settled+expired+evicted-forgotten": int((status >= SETTLED).sum()),
    }


def _repeated(expected: dict[str, int]) -> int:
    """Return how many labels repeated another: all those without another outcome."""
    refused = [f"label_{reason}" for reason in _REFUSED]
    outcomes = ("settled", _PARKED_LABELS, "parked_label_unknown", *refused)
    return expected[_sum_of("label_")] - sum(expected[name] for name in outcomes)


def _tally(observed: Observed, joined: Joined) -> Ints:
    """Count disagreements, and diagnoses by label, as `EnsembleLearner.tally`."""
    K = len(observed.settings.labels)
    diagnoses = joined.diagnosis[diagnosed(observed, joined) & (joined.diagnosis >= 0)]
    columns = observed.logs.diagnoses.columns
    votes = columns["predicted"][diagnoses]
    lowest = np.where(votes < 0, K, votes).min(axis=1, initial=K)
    disagreed = (lowest < votes.max(axis=1, initial=MISSING)).sum()
    return np.array([disagreed, *np.bincount(columns["label"][diagnoses], minlength=K)], np.int64)


def latest_again(observed: Observed, joined: Joined) -> Ints | None:
    """Return when the latest diagnosis was made, and its shares."""
    diagnoses = joined.diagnosis[diagnosed(observed, joined) & (joined.diagnosis >= 0)]
    if not len(diagnoses):
        return None
    columns = observed.logs.diagnoses.columns
    latest = diagnoses[columns["offset"][diagnoses].argmax()]
    return np.array([columns["at"][latest], *columns["parts"][latest]], np.int64)


def audit_latest(observed: Observed, again: Ints | None, findings: Findings) -> None:
    """Compare the shares of the latest diagnosis."""
    rows = observed.state(ENSEMBLE).counts["latest"].items()[1]
    note = "" if observed.whole else "not compared: the start of its topics is gone"
    actual, expected = rows.reshape(-1), np.zeros(0, np.int64) if again is None else again
    same = len(actual) == len(expected)
    differing = int((actual != expected).sum()) if same else abs(len(actual) - len(expected))
    findings.table(
        "ensemble latest", observed.place(ENSEMBLE), values=len(actual),
        differing=0 if note else differing, note=note,
    )  # fmt: skip


def diagnosed(observed: Observed, joined: Joined) -> Bools:
    """Mark the instances that were diagnosed when the state was read."""
    topic = observed.topics.predictions
    columns = observed.logs.predictions.columns
    read = count(columns["id"][observed.within(topic, columns)], observed.size) > 0
    status = observed.pending.status
    forgotten = ((status == GONE) | (status == PARKED)) & read & (joined.diagnosis >= 0)
    return np.asarray((status >= DIAGNOSED) | forgotten)
