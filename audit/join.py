"""The ensemble learner's join: one diagnosis per patient, one use per label, one feedback each.

Only the worker knows when a prediction, a label or a time-out came relative to the others. So
nothing is guessed: what happened according to the outputs and the state must be consistent, and
consistent with the inputs, patient by patient.

    state       a diagnosis                       a label that was read and not refused
    gone        one, if it was ever predicted     was used
    parked      none, and no prediction           waits in the entry
    open        none yet (one, under way)         waits in the entry
    diagnosed   one                               none
    settled     one                               is that of the entry; feedback to all heard
    withdrawn   one                               none any more; feedback to all heard
    expired     one                               none

What counts of several labels of a patient is the last word: an amendment or a withdrawal counts
whatever was said before, another label only where there is none. Each change of a label that had
been learned is a correction in the feedback; those of a patient follow each other, from the label
that was learned first to the last word.
"""

from dataclasses import dataclass

import numpy as np

from agents.erasures import TABLE
from audit.findings import Findings
from audit.observed import (
    DIAGNOSED,
    GONE,
    OPEN,
    PARKED,
    SETTLED,
    WITHDRAWN_STATE,
    Observed,
    waited,
)
from audit.recording.columns import count, firsts, lasts
from learners.arrays.types import MISSING, Bools, Ints
from learners.join import Reason
from learners.join.entries import DiagnosedEntry, OverEntry, SettledEntry
from learners.payloads import Decision
from streams.kafka.topics import ENSEMBLE

FIELDS = ("label", "phase", "cube", "rule", "votes")
"""What feedback hands back of a prediction."""


@dataclass(slots=True)
class Joined:
    """What happened to each of N instances with M learners, as row numbers; -1 where nothing did.

    first      (M, N) the learner's first prediction: it wins
    diagnosis  (N,)   the diagnosis
    feedback   (M, N) the first feedback
    label      (N,)   the label that counts, of those that were read and not refused
    settled    (N,)   whether the state says that a label was used; it may have been withdrawn since
    amended    (N,)   whether a label was amended or withdrawn
    taught     (N,)   of these: the label that was learned first, and
    final      (N,)   the one that counts by the state, both MISSING where there is none
    """

    first: Ints
    diagnosis: Ints
    feedback: Ints
    label: Ints
    settled: Bools
    amended: Bools
    taught: Ints
    final: Ints


class JoinAudit:
    """The audit of the join in one partition."""

    def __init__(self, observed: Observed, findings: Findings) -> None:
        self.observed, self.findings = observed, findings
        self.logs, self.topics = observed.logs, observed.topics
        self.where = observed.place(ENSEMBLE)
        self.size, self.scope = observed.size, observed.scope
        self.status = observed.pending.status
        self.forgets = bool(observed.head.get("forgotten"))
        erased = len(observed.state(ENSEMBLE).entries[TABLE])
        findings.count("patients_erased", erased)
        if erased:
            findings.note(
                "Patients were erased: nothing is kept of them but a digest of their ids, and what"
                " the topics still hold of them is not compared."
            )
        predictions, labels = self.logs.predictions.columns, self.logs.labels.columns
        self.heard = observed.usable(self.topics.predictions)
        self.read_predictions = self.heard & observed.within(self.topics.predictions, predictions)
        self.used_labels = observed.usable(self.topics.labels) & observed.within(
            self.topics.labels, labels
        )
        self.read = count(predictions["id"][self.read_predictions], self.size) > 0
        self.forgotten = self.status == GONE
        if self.forgets:
            # A label for a forgotten instance is parked, as for one that was never seen.
            self.forgotten |= (self.status == PARKED) & self.read
        self.joined = self._join()

    def _join(self) -> Joined:
        predictions, size = self.logs.predictions.columns, self.size
        first = np.full((len(self.topics.learners), size), -1, np.int64)
        for i in range(len(first)):
            rows = np.flatnonzero(self.heard & (predictions["learner"] == i))
            first[i] = _places(predictions["id"], rows, size)
        fed = [log.columns["id"] for log in self.logs.feedback.values()]
        feedback = np.array([firsts(ids, size) for ids in fed])
        label, amended = self._last_words()
        settled = (self.status == SETTLED) | (self.status == WITHDRAWN_STATE)
        if self.forgets:
            # What is forgotten was settled if its feedback is there.
            labelled = (label >= 0) | amended
            settled = settled | (self.forgotten & labelled & (np.max(feedback, 0) >= 0))
        diagnosis = firsts(self.logs.diagnoses.columns["id"], size)
        correctable = (self.status == SETTLED) | (self.status == WITHDRAWN_STATE)
        latest = np.where(label >= 0, _take(self.logs.labels.columns["label"], label), MISSING)
        # Whatever came later about an erased patient has counted for nothing.
        fed_last = self._settled_label(np.array([lasts(ids, size) for ids in fed]))
        latest = np.where(self.observed.erased(ENSEMBLE) >= 0, fed_last, latest)
        final = np.where(correctable, self.observed.pending.label, latest)
        taught = self._settled_label(feedback)
        return Joined(first, diagnosis, feedback, label, settled, amended, taught, final)

    def _settled_label(self, feedback: Ints) -> Ints:
        """Return the label of some feedback on each instance, MISSING where there is none."""
        labels = np.full(self.size, MISSING, np.int64)
        for at, log in zip(feedback, self.logs.feedback.values(), strict=True):
            labels = np.where(at >= 0, _take(log.columns["label"], at), labels)
        return labels

    def _last_words(self) -> tuple[Ints, Bools]:
        """Return the label record that counts for each instance, and where one amends another."""
        columns = self.logs.labels.columns
        used = np.flatnonzero(self.used_labels)
        label = _places(columns["id"], used, self.size)
        amends = columns["amends"][used]
        amended = count(columns["id"][used[amends]], self.size) > 0
        for at in used[amended[columns["id"][used]]].tolist():
            number, label_index = columns["id"][at], columns["label"][at]
            if columns["amends"][at]:
                label[number] = at if label_index != MISSING else -1
            elif label[number] < 0:
                label[number] = at
        return label, amended

    def run(self) -> Joined:
        """Check everything; return what happened to each instance."""
        self._diagnoses()
        self._opinions()
        self._labels()
        self._count_labels()
        self._feedback()
        self._corrections()
        self._handed_back()
        self._entries()
        return self.joined

    # Diagnoses.

    def _diagnoses(self) -> None:
        """Compare diagnoses with predictions and the state."""
        findings, scope, status = self.findings, self.scope, self.status
        diagnosed_times = count(self.logs.diagnoses.columns["id"], self.size)
        ever = count(self.logs.predictions.columns["id"][self.heard], self.size) > 0
        due = (status >= DIAGNOSED) | (self.forgotten & self.read)
        complete = self.logs.diagnoses.columns["complete"]
        findings.count("diagnoses", len(complete))
        findings.count("diagnoses_complete", complete.sum())
        findings.count("diagnoses_incomplete", (~complete).sum())
        findings.count("patients", ever.sum())
        findings.count("patients_waiting", (scope & (status == OPEN)).sum())
        findings.lost("diagnoses", self.where, scope & due & (diagnosed_times == 0))
        findings.double("diagnoses", self.where, np.maximum(diagnosed_times - 1, 0)[scope])
        findings.differing(
            "diagnoses without prediction", self.where, diagnosed_times[scope & ~ever]
        )
        early = scope & self.read & (status == PARKED) & ~self.forgotten
        findings.differing("parked patients with predictions", self.where, early)

    def _opinions(self) -> None:
        """Compare what diagnoses say of each learner with its first prediction."""
        diagnoses, predictions = self.logs.diagnoses.columns, self.logs.predictions.columns
        ids = diagnoses["id"]
        votes, wrong = diagnoses["predicted"], np.zeros(len(ids), np.bool_)
        past = np.zeros(len(ids), np.bool_)
        for i, first in enumerate(self.joined.first):
            at, heard = first[ids], votes[:, i] != MISSING
            wrong |= heard & (
                votes[:, i] != np.where(at >= 0, _take(predictions["label"], at), MISSING)
            )
            past |= heard & (at >= 0) & (_take(predictions["history"], at) > 0)
        wrong |= past != diagnoses["history"]
        complete = (votes != MISSING).all(axis=1)
        if self.topics.contextual:
            complete &= diagnoses["cube"] >= 0
        wrong |= complete != diagnoses["complete"]
        self.findings.differing("opinions in diagnoses", self.where, wrong & self.scope[ids])

    # Labels.

    def _labels(self) -> None:
        """Check that every label that was read has exactly one outcome."""
        findings, status, scope = self.findings, self.status, self.scope
        columns, joined = self.logs.labels.columns, self.joined
        plain = self.used_labels & ~columns["amends"]
        used = count(columns["id"][plain], self.size)
        due = (joined.label >= 0) | ((used > 0) & ~joined.amended)
        first = np.where(joined.label >= 0, _take(columns["label"], joined.label), MISSING)
        waiting = ((status == PARKED) | (status == OPEN)) & (self.observed.pending.label >= 0)
        over = waiting | (status == SETTLED) | (status == WITHDRAWN_STATE)
        current = np.where(over, self.observed.pending.label, first)
        # A label that repeats one that waited in vain is counted, and not kept.
        in_vain = np.isin(columns["offset"], self.observed.refused(self.topics.labels, "unknown"))
        vain = count(columns["id"][in_vain], self.size) > 0
        lost = due & ~joined.settled & ~waiting & ~vain
        ids = columns["id"]
        labels_then = np.where(joined.amended[ids], first[ids], columns["label"])
        again = labels_then != current[ids]
        again &= self.used_labels & ~lost[columns["id"]] & ~vain[columns["id"]]
        if self.forgets:
            again &= ~self.forgotten[columns["id"]]
        findings.lost("labels", self.where, lost & scope)
        findings.differing("labels of the state", self.where, again & scope[columns["id"]])
        bare = joined.settled & (used == 0) & ~joined.amended & scope
        findings.differing("settlements without label", self.where, bare)
        findings.count("labels_waiting", waiting.sum())
        once = (joined.settled | waiting) & ~joined.amended
        findings.count("labels_repeated", np.maximum(used - once, 0)[~joined.amended].sum())
        findings.count("labels_amending", (self.used_labels & columns["amends"]).sum())

    def _count_labels(self) -> None:
        """Count labels by outcome."""
        read = self.observed.within(self.topics.labels, self.logs.labels.columns)
        self.findings.count("labels", read.sum())
        self.findings.count("labels_under_way", (~read).sum())
        self.findings.count("labels_settled", self.joined.settled.sum())
        for reason in map(str, Reason):
            refused = self.observed.refused(self.topics.labels, reason)
            self.findings.count(f"labels_{reason}", len(refused))

    # Feedback.

    def _feedback(self) -> None:
        """Compare feedback with settlements: one to each learner that was heard."""
        votes = self.logs.diagnoses.columns["predicted"]
        labels = count(self.logs.labels.columns["id"], self.size)
        for i, (name, log) in enumerate(self.logs.feedback.items()):
            ids = log.columns["id"]
            sent = count(ids[~log.columns["amends"]], self.size)
            spoke = np.where(self.joined.diagnosis >= 0, _take(votes[:, i], self.joined.diagnosis),
                             MISSING) != MISSING  # fmt: skip
            where = self.observed.place(self.topics.feedback(name))
            due = self.joined.settled & spoke
            self.findings.lost("feedback", where, due & (sent == 0) & self.scope)
            self.findings.double("feedback", where, np.maximum(sent - 1, 0)[self.scope])
            nowhere = (sent > 0) & ((labels == 0) | (self.joined.first[i] < 0))
            self.findings.differing("feedback without label or prediction", where,
                                    nowhere & self.scope)  # fmt: skip

    def _corrections(self) -> None:
        """Check that corrections lead from the label learned first to the one that counts."""
        due = self.joined.amended & self.joined.settled & self.scope
        for name, log in self.logs.feedback.items():
            columns, counts = log.columns, np.full(self.size, MISSING, np.int64)
            broken, reached = np.zeros(self.size, np.bool_), np.zeros(self.size, np.bool_)
            amended = np.flatnonzero(due[columns["id"]])
            for at in amended.tolist():
                number = columns["id"][at]
                broken[number] |= columns["amends"][at] and columns["was"][at] != counts[number]
                counts[number] = columns["label"][at]
                # Later ones may have been under way when the state was read.
                reached[number] |= counts[number] == self.joined.final[number]
            corrected = count(columns["id"][amended], self.size) > 0
            where = self.observed.place(self.topics.feedback(name))
            self.findings.differing(
                "corrections in feedback", where, (broken | ~reached) & corrected
            )
            self.findings.count("corrections", columns["amends"].sum())

    def _handed_back(self) -> None:
        """Compare what feedback says with the label and the prediction it is about."""
        predictions, labels = self.logs.predictions.columns, self.logs.labels.columns
        anything = firsts(labels["id"], self.size)
        for i, (name, log) in enumerate(self.logs.feedback.items()):
            columns, ids = log.columns, log.columns["id"]
            at, label = self.joined.first[i][ids], self.joined.label[ids]
            label = np.where(label >= 0, label, anything[ids])
            checkable = (at >= 0) & ((label >= 0) | self.joined.amended[ids]) & self.scope[ids]
            wrong = columns["label"] != _take(labels["label"], label)
            # Which of several labels counted at the time is what `_corrections` follows.
            wrong &= ~self.joined.amended[ids]
            for field in FIELDS:
                handed = columns["predicted" if field == "label" else field]
                wrong = wrong | (handed != _take(predictions[field], at))
            # Only joint learners are handed their log-odds back, and not by older versions.
            odds = columns["odds"]
            sent = predictions["odds"][at] if len(predictions["odds"]) else odds
            wrong |= (~np.isnan(odds) & (odds != sent)).any(axis=1)
            where = self.observed.place(self.topics.feedback(name))
            self.findings.differing("contents of feedback", where, wrong & checkable)

    # Entries.

    def _entries(self) -> None:
        """Compare what the state keeps of each waiting instance with its predictions."""
        labels = self.logs.predictions.columns["label"]
        wrong = compared = 0
        for number, pending in self.observed.pending.entries.items():
            if isinstance(pending, OverEntry) or not self.scope[number]:
                continue
            entry = waited(pending) if isinstance(pending, SettledEntry) else pending
            compared += 1
            sent = [labels[at] if at >= 0 else MISSING for at in self.joined.first[:, number]]
            pairs = zip(entry.labels, sent, strict=True)
            wrong += any(label not in (MISSING, first) for label, first in pairs)
            if isinstance(entry, DiagnosedEntry):
                wrong += self._decided_otherwise(number, Decision(*entry.decision))
        self.findings.table("ensemble pending", self.where, values=compared, differing=wrong)

    def _decided_otherwise(self, number: int, decision: Decision) -> bool:
        """Tell whether an entry's decision differs from the diagnosis."""
        at = self.joined.diagnosis[number]
        if at < 0:
            return True
        columns = self.logs.diagnoses.columns
        same_label = columns["label"][at] == decision.label
        same_basis = not decision.basis or (columns["basis"][at] == decision.basis).all()
        return not (same_label and same_basis and (columns["parts"][at] == decision.parts).all())


def _places(ids: Ints, among: Ints, size: int) -> Ints:
    """Return where each id occurs first among some rows, -1 where it does not."""
    first = firsts(ids[among], size)
    return np.where(first >= 0, among[first] if len(among) else -1, -1)


def _take(column: Ints, places: Ints) -> Ints:
    """Return the entries at some places; anything where the place is -1."""
    if not len(column):
        return np.full(places.shape, MISSING, np.int64)
    return np.asarray(column[places], np.int64)
