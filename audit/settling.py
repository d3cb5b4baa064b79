"""What the ensemble learner learned, recomputed: losses, scores, regret, window and counts.

Each settlement is reconstructed from what travelled: the diagnosis says what was decided and with
which shares, the predictions what each learner said, the feedback which learners had been heard by
then, and when. The pure ensemble learner then learns from them as it did live. Its tables of
integers do not depend on the order; tables of real numbers do, and the order is that of the
feedback.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agents.ensemble_learner import ensemble_learner
from audit.assessments import SurenessAudit
from audit.compare import compare_tables
from audit.ensemble_totals import diagnosed
from audit.findings import Findings
from audit.join import Joined
from audit.observed import Observed
from audit.recording.columns import firsts
from audit.settling_order import merged_order
from learners.arrays.tables import CellTable
from learners.arrays.types import MISSING, Ints
from learners.assessment.assessment import packed
from learners.assessment.bins import chance_bins, support_bins
from learners.ensemble import EnsembleLearner
from learners.join import Correct, Settle
from learners.payloads import NOTHING_HEARD, Decision, PredictionPayload
from learners.scores.window import Window
from streams.kafka.topics import ENSEMBLE

_CHUNK = 1000


class SettlingAudit:
    """The audit of what was learned in one partition."""

    def __init__(self, observed: Observed, joined: Joined, findings: Findings) -> None:
        self.observed, self.joined, self.findings = observed, joined, findings
        self.logs = observed.logs
        self.where = observed.place(ENSEMBLE)
        self.learner: EnsembleLearner = ensemble_learner(observed.settings)
        names = list(observed.settings.learners)
        self.own_experts = self.learner.fusion.experts(names) != names

    def run(self) -> EnsembleLearner:
        """Recompute and compare; return the learner that has learned it all again."""
        order, certain = self._order()
        corrected = bool((self.joined.amended & self.joined.settled).any())
        sureness = SurenessAudit(self.observed, self.findings, certain=certain, corrected=corrected)
        for start in range(0, len(order), _CHUNK):
            numbers = order[start : start + _CHUNK]
            cases = [self._settle(number) for number in numbers]
            self.learner.learn(cases)
            self._others(numbers, cases)
            sureness.follow(cases)
        sureness.report()
        self._correct(order)
        self._note_diagnoses()
        self._tables(certain)
        self._window()
        return self.learner

    def _correct(self, order: Sequence[int]) -> None:
        """Recount what was corrected: integers do not mind the order, nor what was between."""
        joined = self.joined
        corrections = [
            Correct(replace(case, label=int(joined.final[number])), case.label, case.label, serial)
            for serial, number in enumerate(order)
            if joined.amended[number] and joined.final[number] != joined.taught[number]
            for case in [self._settle(number)]
        ]
        if corrections:
            self.learner.correct(corrections)

    def _note_diagnoses(self) -> None:
        """Count answers and referrals; no label is needed."""
        at = self.joined.diagnosis[diagnosed(self.observed, self.joined)]
        columns, assessment = self.logs.diagnoses.columns, self.learner.assessment
        at = at[(at >= 0) & (columns["learned"][at] >= 0)] if len(columns) else at[:0]
        assessment.note(columns["label"][at].astype(np.int64), columns["answer"][at] >= 0)

    def _others(self, numbers: Sequence[int], cases: Sequence[Settle]) -> None:
        """Compare what joint learners were told of the others with what those had sent."""
        settings = self.observed.settings
        if not any(learner.joint for learner in settings.learners.values()):
            return
        expected = self.learner.others(cases)
        for i, (name, log) in enumerate(self.logs.feedback.items()):
            at = self.joined.feedback[i][numbers]
            fed = (at >= 0) & self.observed.scope[numbers]
            sent = log.columns["others"][at[fed]]
            wrong = (sent != expected[fed, i]).any(axis=1) & settings.learners[name].joint
            where = self.observed.place(self.observed.topics.feedback(name))
            self.findings.differing("what feedback says of the others", where, wrong)

    def _order(self) -> tuple[list[int], bool]:
        """Return the settled instances in the order of settling, and whether it is certain."""
        taught = np.where(self.joined.amended, self.joined.taught >= 0, self.joined.label >= 0)
        usable = self.joined.settled & (self.joined.diagnosis >= 0) & taught
        sequences, times = [], np.zeros(self.observed.size, np.int64)
        for log in self.logs.feedback.values():
            plain = ~log.columns["amends"]
            ids = log.columns["id"][plain]
            times[ids] = log.columns["at"][plain]
            sequences.append(ids[usable[ids]].tolist())
        order, certain = merged_order(sequences, times.tolist())
        missed = np.setdiff1d(np.flatnonzero(usable), np.array(order, np.int64)).tolist()
        self.times = times
        return order + missed, certain and not missed

    def _settle(self, number: int) -> Settle:
        """Reconstruct one settlement."""
        diagnoses, at = self.logs.diagnoses.columns, int(self.joined.diagnosis[number])
        in_time = diagnoses["predicted"][at].tolist()
        labels, payloads = list(in_time), []
        for i, log in enumerate(self.logs.feedback.values()):
            feedback = int(self.joined.feedback[i][number])
            if labels[i] == MISSING and feedback >= 0:
                labels[i] = int(log.columns["predicted"][feedback])
            payloads.append(None if labels[i] == MISSING else self._heard(i, number))
        spoken = [max(label, MISSING) for label in in_time]
        votes = diagnoses["votes"][at].tolist() if self.own_experts else spoken
        label, parts = int(diagnoses["label"][at]), diagnoses["parts"][at].tolist()
        basis = diagnoses["basis"][at].tolist()
        sure = self._kept(at, label)
        past = bool(diagnoses["history"][at])
        decision = Decision(self._cell(at), label, parts, votes, basis, sure, past)
        return Settle(
            self.names[number], int(self.times[number]), self._truth(number),
            tuple(labels), tuple(payloads), (), None, bool(diagnoses["complete"][at]), decision,
            int(diagnoses["at"][at]),
        )  # fmt: skip

    def _truth(self, number: int) -> int:
        """Return the label that an instance was settled with."""
        if self.joined.amended[number]:
            return int(self.joined.taught[number])
        return int(self.logs.labels.columns["label"][self.joined.label[number]])

    def _kept(self, at: int, label: int) -> bytes:
        """Return what was kept of how sure a diagnosis was; nothing if it does not say."""
        columns, row = self.logs.diagnoses.columns, slice(at, at + 1)
        support, chance = columns["support"][row], columns["chance"][row, label]
        if support.min() < 0 or np.isnan(chance).any():
            return b""
        possible = columns["possible"][row, None] >> np.arange(support.shape[1]) & 1
        return packed(support_bins(support)[0], possible > 0, chance_bins(chance))[0]

    @property
    def names(self) -> Sequence[str]:
        """The ids of all instances."""
        if not hasattr(self, "_names"):
            self._names = self.logs.names.ids.names()
        return self._names

    def _heard(self, learner: int, number: int) -> PredictionPayload:
        """Return what the ensemble learner heard of a learner about an instance."""
        at = int(self.joined.first[learner][number])
        if at < 0:
            return NOTHING_HEARD
        columns = self.logs.predictions.columns
        accuracy, odds = float(columns["accuracy"][at]), columns["odds"][at]
        return PredictionPayload(
            bool(columns["exploring"][at]),
            None if np.isnan(accuracy) else accuracy,
            None if np.isnan(odds[0]) else odds.tolist(),
        )

    def _cell(self, at: int) -> int:
        """Return the context cube that an instance was decided in."""
        if self.logs.contexts is None:
            return 0
        cube = int(self.logs.diagnoses.columns["cube"][at])
        return cube if cube >= 0 else self.learner.unheard

    def _tables(self, certain: bool) -> None:
        live = self.observed.state(ENSEMBLE).counts
        whole = self.observed.whole
        for name, expected in ensemble_tables(self.learner).items():
            if expected.dtype.kind == "f" and not certain:
                note = "not compared: the order of its labels is not known"
                self.findings.table(
                    f"ensemble {name}", self.where, values=0, differing=0, note=note
                )
                continue
            compare_tables(
                self.findings, f"ensemble {name}", self.where, live[name], expected, whole=whole
            )

    def _window(self) -> None:
        """Compare the last labelled instances, whatever their order."""
        live = Window(self.learner.window.scopes, self.learner.window.classes)
        pages = self.observed.state(ENSEMBLE).counts["window"].items()
        live.put_pages(*pages, self.observed.head["settled"])
        actual, expected = _rows(live), _rows(self.learner.window)
        if len(actual) == len(expected):
            differing = int((actual != expected).any(axis=1).sum())
        else:
            differing = abs(len(actual) - len(expected))
        note = "" if self.observed.whole else "not compared: the start of its topics is gone"
        self.findings.table(
            "ensemble window", self.where, values=len(actual), differing=0 if note else differing,
            note=note,
        )  # fmt: skip


def ensemble_tables(learner: EnsembleLearner) -> dict[str, CellTable]:
    """Return the tables of counts of an ensemble learner, by their names in the state."""
    named = {
        "fusion_" + name.replace(".", "_").replace("-", "_"): table
        for name, table in learner.fusion.tables().items()
    }
    sure = learner.assessment.table
    return {**named, "scores": learner.scores, "regret": learner.regret, "assessment": sure}


def _rows(window: Window) -> Ints:
    """Return the window as sorted rows."""
    at, truth, predicted = window.rows()
    rows = np.concatenate([at[:, None], truth[:, None], predicted], axis=1)
    return rows[np.lexsort(rows.T[::-1])]


def context_misfits(observed: Observed) -> int:
    """Return how many diagnoses name a cube other than that of the patient's first context."""
    logs = observed.logs
    if logs.contexts is None:
        return 0
    columns, cells = logs.diagnoses.columns, logs.contexts.cells()
    at = firsts(logs.contexts.columns["id"], observed.size)[columns["id"]]
    named = columns["cube"] >= 0
    cubes = np.where(at >= 0, cells[at] if len(cells) else -1, -1)
    return int((named & (cubes != columns["cube"]) & observed.scope[columns["id"]]).sum())
