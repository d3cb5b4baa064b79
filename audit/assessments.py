"""Recomputes how sure each diagnosis was from what had been learned when it was made.

A diagnosis names how many labels had been learned when it was made, and the support that fusion
found. With one partition the labels are settled in a known order: so an assessment that has learned
exactly that many labels gives its chance, its answer and its track record again. With several, it
is not on record what a partition had heard of the others by then: only the tables are compared.
"""

from collections.abc import Sequence

import numpy as np

from audit.findings import Findings
from audit.observed import Observed
from learners.arrays.types import Ints
from learners.assessment.bins import MILLION
from learners.ensemble import learn_sureness
from learners.fusion.base import FusedPredictions
from learners.join import Settle
from learners.payloads import Decisions
from settings.building import assessment
from streams.kafka.topics import ENSEMBLE

_TABLE = "ensemble chances, answers and track records"


class SurenessAudit:
    """Compares diagnoses with an assessment that learns again."""

    def __init__(
        self, observed: Observed, findings: Findings, *, certain: bool, corrected: bool
    ) -> None:
        self._columns = observed.logs.diagnoses.columns
        self._assessment = assessment(observed.settings)
        self._findings, self._where = findings, observed.place(ENSEMBLE)
        self._note = _unknowable(observed, certain, corrected)
        self._now = self.differing = 0
        learned = self._columns["learned"]
        usable = (learned >= 0) & (self._columns["support"].min(axis=1, initial=0) >= 0)
        at = np.flatnonzero(usable) if not self._note else np.zeros(0, np.int64)
        self._at: Ints = at[np.argsort(learned[at], kind="stable")]
        self._learned: Ints = learned[self._at]

    def follow(self, cases: Sequence[Settle]) -> None:
        """Learn settlements in their order, and check each diagnosis where it was made."""
        if not cases:
            return
        decisions = Decisions.of([case.decision for case in cases])
        sure, labels = decisions.sure, np.array(decisions.label, np.int64)
        truth = np.array([case.label for case in cases], np.int64)
        start, end = self._now, self._now + len(cases)
        while self._now < end:
            self._check()
            later = self._learned[np.searchsorted(self._learned, self._now, side="right") :]
            until = min(int(later[0]), end) if len(later) else end
            part = slice(self._now - start, until - start)
            learn_sureness(self._assessment, sure[part], labels[part], truth[part])
            self._now = until

    def _check(self) -> None:
        """Compare the diagnoses made when as many labels had been learned as by now."""
        first, last = np.searchsorted(self._learned, [self._now, self._now + 1])
        at = self._at[first:last]
        if not len(at):
            return
        columns = self._columns
        label = columns["label"][at].astype(np.int64)
        none = np.zeros((len(at), 0), np.int64)
        fused = FusedPredictions(label, none, none, columns["support"][at] / MILLION)
        again = self._assessment.assess(fused, self._now)
        record = np.array(again.records)[again.track]
        answer = np.where(again.answered, again.labels, -1)
        bits = again.possible @ (1 << np.arange(self._assessment.classes))
        wrong = (again.chance != columns["chance"][at]).any(axis=1)
        wrong |= (np.abs(record - columns["record"][at]) > _TOLERANCE).any(axis=1)
        wrong |= (answer != columns["answer"][at]) | (again.labels != label)
        wrong |= bits != columns["possible"][at]
        self.differing += int(wrong.sum())

    def report(self) -> None:
        """Check what was made after the last label, and report."""
        self._check()
        self._findings.table(
            _TABLE, self._where, values=len(self._at), differing=self.differing, note=self._note
        )


_TOLERANCE = 1e-3
"""Ends of intervals are found by bisection, which other processors may round differently."""


def _unknowable(observed: Observed, certain: bool, corrected: bool) -> str:
    """Say why they cannot be recomputed; nothing if they can."""
    if observed.settings.topics.partitions > 1:
        return "not compared: what a partition had heard of the others is not on record"
    if not observed.whole:
        return "not compared: the start of its topics is gone"
    if corrected:
        return "not compared: labels were corrected between diagnoses, and it is not known where"
    return "" if certain else "not compared: the order of the labels is not known"
