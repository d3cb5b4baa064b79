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
    expired     one                               none
"""

from dataclasses import dataclass

import numpy as np

from audit.findings import Findings
from audit.observed import DIAGNOSED, GONE, OPEN, PARKED, SETTLED, Observed
from audit.recording.columns import count, firsts
from learners.arrays.types import MISSING, Bools, Ints
from learners.join import Reason
from learners.join.entries import DiagnosedEntry, OverEntry
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
    label      (N,)   the first label that was read and not refused
    settled    (N,)   whether the state says that the label was used
    """

    first: Ints
    diagnosis: Ints
    feedback: Ints
    label: Ints
    settled: Bools


class JoinAudit:
    """The audit of the join in one partition."""

    def __init__(self, observed: Observed, findings: Findings) -> None:
        self.observed, self.findings = observed, findings
        self.logs, self.topics = observed.logs, observed.topics
        self.where = observed.place(ENSEMBLE)
        self.size, self.scope = observed.size, observed.scope
        self.status = observed.pending.status
        self.forgets = bool(observed.head.get("forgotten"))
        predictions, labels = self.logs.predictions.columns, self.logs.labels.columns
        self.heard = observed.usable(self.topics.predictions)
        self.read_predictions = self.heard & observed.within(self.topics.predictions, predictions)
        self.used_labels = observed.usable(self.topics.labels) & observed.within(
            self.topics.labels, labels
        )
        self.read = count(predictions["id"][self.read_predictions], self.size) > 0
        self.gone = self.status == GONE
        if self.forgets:
            # A label for a forgotten instance is parked, as for one that was never seen.
            self.gone |= (self.status == PARKED) & self.read
        self.joined = self._join()

    def _join(self) -> Joined:
        predictions, size = self.logs.predictions.columns, self.size
        first = np.full((len(self.topics.learners), size), -1, np.int64)
        for i in range(len(first)):
            mine = np.flatnonzero(self.heard & (predictions["learner"] == i))
            first[i] = _places(predictions["id"], mine, size)
        feedback = [firsts(log.columns["id"], size) for log in self.logs.feedback.values()]
        used = np.flatnonzero(self.used_labels)
        label = _places(self.logs.labels.columns["id"], used, size)
        settled = self.status == SETTLED
        if self.forgets:
            # What is forgotten was settled if its feedback is there.
            settled = settled | (self.gone & (label >= 0) & (np.max(feedback, 0) >= 0))
        diagnosis = firsts(self.logs.diagnoses.columns["id"], size)
        return Joined(first, diagnosis, np.array(feedback), label, settled)

    def run(self) -> Joined:
        """Check everything; return what happened to each instance."""
        self._diagnoses()
        self._opinions()
        self._labels()
        self._count_labels()
        self._feedback()
        self._handed_back()
        self._entries()
        return self.joined

    # Diagnoses.

    def _diagnoses(self) -> None:
        """Compare diagnoses with predictions and the state."""
        findings, scope, status = self.findings, self.scope, self.status
        made = count(self.logs.diagnoses.columns["id"], self.size)
        ever = count(self.logs.predictions.columns["id"][self.heard], self.size) > 0
        due = (status >= DIAGNOSED) | (self.gone & self.read)
        complete = self.logs.diagnoses.columns["complete"]
        findings.count("diagnoses", len(complete))
        findings.count("diagnoses_complete", complete.sum())
        findings.count("diagnoses_incomplete", (~complete).sum())
        findings.count("patients", ever.sum())
        findings.count("patients_waiting", (scope & (status == OPEN)).sum())
        findings.lost("diagnoses", self.where, scope & due & (made == 0))
        findings.double("diagnoses", self.where, np.maximum(made - 1, 0)[scope])
        findings.differing("diagnoses without prediction", self.where, made[scope & ~ever])
        early = scope & self.read & (status == PARKED) & ~self.gone
        findings.differing("parked patients with predictions", self.where, early)

    def _opinions(self) -> None:
        """Compare what diagnoses say of each learner with its first prediction."""
        diagnoses, predictions = self.logs.diagnoses.columns, self.logs.predictions.columns
        ids = diagnoses["id"]
        said, wrong = diagnoses["said"], np.zeros(len(ids), np.bool_)
        past = np.zeros(len(ids), np.bool_)
        for i, first in enumerate(self.joined.first):
            at, heard = first[ids], said[:, i] != MISSING
            wrong |= heard & (
                said[:, i] != np.where(at >= 0, _take(predictions["label"], at), MISSING)
            )
            past |= heard & (at >= 0) & (_take(predictions["history"], at) > 0)
        wrong |= past != diagnoses["history"]
        complete = (said != MISSING).all(axis=1)
        if self.topics.contextual:
            complete &= diagnoses["cube"] >= 0
        wrong |= complete != diagnoses["complete"]
        self.findings.differing("opinions in diagnoses", self.where, wrong & self.scope[ids])

    # Labels.

    def _labels(self) -> None:
        """Check that every label that was read has exactly one outcome."""
        findings, status, scope = self.findings, self.status, self.scope
        columns, joined = self.logs.labels.columns, self.joined
        used = count(columns["id"][self.used_labels], self.size)
        first = np.where(joined.label >= 0, _take(columns["label"], joined.label), MISSING)
        waiting = ((status == PARKED) | (status == OPEN)) & (self.observed.pending.label >= 0)
        kept = np.where(waiting | (status == SETTLED), self.observed.pending.label, first)
        # A label that repeats one that waited in vain is counted, and not kept.
        in_vain = np.isin(columns["offset"], self.observed.refused(self.topics.labels, "unknown"))
        vain = count(columns["id"][in_vain], self.size) > 0
        lost = (used > 0) & ~joined.settled & ~waiting & ~vain
        again = columns["label"] != kept[columns["id"]]
        again &= self.used_labels & ~lost[columns["id"]] & ~vain[columns["id"]]
        if self.forgets:
            again &= ~self.gone[columns["id"]]
        findings.lost("labels", self.where, lost & scope)
        findings.differing("labels of the state", self.where, again & scope[columns["id"]])
        bare = joined.settled & (used == 0) & scope
        findings.differing("settlements without label", self.where, bare)
        findings.count("labels_waiting", waiting.sum())
        findings.count("labels_repeated", np.maximum(used - (joined.settled | waiting), 0).sum())

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
        said = self.logs.diagnoses.columns["said"]
        labels = count(self.logs.labels.columns["id"], self.size)
        for i, (name, log) in enumerate(self.logs.feedback.items()):
            ids = log.columns["id"]
            sent = count(ids, self.size)
            spoke = np.where(self.joined.diagnosis >= 0, _take(said[:, i], self.joined.diagnosis),
                             MISSING) != MISSING  # fmt: skip
            where = self.observed.place(self.topics.feedback(name))
            due = self.joined.settled & spoke
            self.findings.lost("feedback", where, due & (sent == 0) & self.scope)
            self.findings.double("feedback", where, np.maximum(sent - 1, 0)[self.scope])
            nowhere = (sent > 0) & ((labels == 0) | (self.joined.first[i] < 0))
            self.findings.differing("feedback without label or prediction", where,
                                    nowhere & self.scope)  # fmt: skip

    def _handed_back(self) -> None:
        """Compare what feedback says with the label and the prediction it is about."""
        predictions, labels = self.logs.predictions.columns, self.logs.labels.columns
        anything = firsts(labels["id"], self.size)
        for i, (name, log) in enumerate(self.logs.feedback.items()):
            columns, ids = log.columns, log.columns["id"]
            at, label = self.joined.first[i][ids], self.joined.label[ids]
            label = np.where(label >= 0, label, anything[ids])
            known = (at >= 0) & (label >= 0) & self.scope[ids]
            wrong = columns["label"] != _take(labels["label"], label)
            for field in FIELDS:
                told = columns["predicted" if field == "label" else field]
                wrong = wrong | (told != _take(predictions[field], at))
            # Only joint learners are handed their log-odds back, and not by older versions.
            odds = columns["odds"]
            sent = predictions["odds"][at] if len(predictions["odds"]) else odds
            wrong |= (~np.isnan(odds) & (odds != sent)).any(axis=1)
            where = self.observed.place(self.topics.feedback(name))
            self.findings.differing("contents of feedback", where, wrong & known)

    # Entries.

    def _entries(self) -> None:
        """Compare what the state keeps of each waiting instance with its predictions."""
        labels = self.logs.predictions.columns["label"]
        wrong = compared = 0
        for number, entry in self.observed.pending.entries.items():
            if isinstance(entry, OverEntry) or not self.scope[number]:
                continue
            compared += 1
            told = [labels[at] if at >= 0 else MISSING for at in self.joined.first[:, number]]
            kept = zip(entry.labels, told, strict=True)
            wrong += any(label not in (MISSING, first) for label, first in kept)
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
