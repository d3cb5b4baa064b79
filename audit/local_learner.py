"""One local learner: every instance predicted once, every feedback counted once.

instances      each good one has a prediction, made in its own cube by its own rule
feedback       each record, once, gives the counts; in order and with the features, the models
reasons        one for each prediction that has any, if published (`audit.published_reasons`)
"""

import numpy as np

from agents.pooling import PhaseIds
from agents.totals import (
    CUBES,
    EXPLORED,
    FEW,
    FORGOTTEN,
    INSTANCES,
    LABELLED,
    LOST,
    PREDICTED,
    THIN,
)
from audit.compare import compare_tables
from audit.findings import Findings
from audit.learned_rules import Taught, audit_models, lessons_of
from audit.observed import Observed
from audit.published_reasons import audit_reasons
from audit.recording.columns import count, first_of_each, occurrences
from audit.recording.topic_logs import NONE
from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import ABSTAINED, MISSING, Bools, Ints
from learners.local.learner import Labelled, LocalLearner
from learners.rules.base import RuleError
from learners.theory.regret import local_regret_parts
from settings.building import local_learner
from streams.kafka.topics import local

_COLUMNS = (
    "id", "label", "phase", "cube", "rule", "exploring", "trials", "votes", "odds", "history",
)  # fmt: skip


class LocalAudit:
    """The audit of one local learner in one partition."""

    def __init__(self, observed: Observed, name: str, findings: Findings) -> None:
        self.observed, self.name, self.findings = observed, name, findings
        self.learner = local_learner(observed.settings, name)
        self.state = observed.state(local(name))
        self.where = observed.place(local(name))
        self.topic = observed.topics.instances(name)
        self.instances = observed.logs.instances[name].columns
        self.feedback = observed.logs.feedback[name].columns
        predictions = observed.logs.predictions.columns
        own = predictions["learner"] == list(observed.settings.learners).index(name)
        self.predictions = {key: predictions[key][own] for key in _COLUMNS}
        self.erased = observed.erased(local(name))
        decided = observed.usable(self.topic) & ~self._after_erasure()
        self.read = decided & observed.within(self.topic, self.instances)
        self.later = decided & ~observed.within(self.topic, self.instances)

    def _after_erasure(self) -> Bools:
        """Mark the instances of erased patients that were dropped: they have no prediction."""
        ids = self.instances["id"]
        predictions = count(self.predictions["id"], self.observed.size)
        return np.asarray((self.erased[ids] >= 0) & (occurrences(ids) >= predictions[ids]))

    def run(self) -> Ints:
        """Check everything; return the totals as they should be."""
        self._existence()
        self._content()
        audit_reasons(self)
        learned = self._learned()
        taught = learn_again(self, learned)
        counts = self._counts()
        totals = self._totals(counts)
        audit_models(self, taught)
        return totals

    def _existence(self) -> None:
        """Compare predictions with instances, patient by patient."""
        observed, findings = self.observed, self.findings
        size, ids, scope = observed.size, self.instances["id"], observed.scope
        read, later = count(ids[self.read], size), count(ids[self.later], size)
        predictions = count(self.predictions["id"], size)
        findings.count("instances", self.read.sum())
        findings.count("instances_under_way", self.later.sum())
        findings.count("predictions", len(self.predictions["id"]))
        arrived = (read + later) > 0
        findings.lost("predictions", self.where, np.maximum(read - predictions, 0)[scope])
        findings.double(
            "predictions", self.where, np.maximum(predictions - read - later, 0)[scope & arrived]
        )
        findings.differing(
            "predictions without instance", self.where, predictions[scope & ~arrived]
        )

    def _content(self) -> None:
        """Compare each prediction with what can be computed from its instance alone."""
        of_instance, at = self._pairs()
        rows = self.instances["row"][of_instance]
        predicted = {key: column[at] for key, column in self.predictions.items()}
        cubes = np.full(len(at), -1, np.int64)
        unit = self.learner.space.unit(rows)
        for phase in np.unique(predicted["phase"]).tolist():
            of = predicted["phase"] == phase
            cubes[of] = self.learner.iup.phase(phase).partition.cells(unit[of])
        if not self.learner.space.online:  # else it depends on what was learned by then
            self.findings.differing("cubes of predictions", self.where, cubes != predicted["cube"])
        self.findings.differing("rules of predictions", self.where, predicted["rule"] == NONE)
        past = self.instances["history"][of_instance] != predicted["history"]
        self.findings.differing("history in predictions", self.where, past)
        # What stood in for a missing value is known only if nothing was learned about it.
        complete = self.learner.filling.look(rows)
        certain = np.full(len(rows), not self.learner.learns) | ~np.isnan(rows).any(axis=1)
        for f, rule in enumerate(self.learner.rules):
            of = np.flatnonzero((predicted["rule"] == f) & certain)
            if rule.learns or not of.size or (self.learner.space.online and not rule.scale_free):
                continue  # it depends on what had been learned by then
            blind = np.isnan(rows[of]).all(axis=1)
            try:
                expected = np.where(blind, ABSTAINED, rule.predict(complete[of]))
                wrong = expected != predicted["label"][of]
            except RuleError:
                wrong = np.ones(of.size, np.bool_)
            self.findings.differing("labels of predictions", self.where, wrong)

    def _pairs(self) -> tuple[Ints, Ints]:
        """Return instances, and which prediction belongs to each: the k-th to the k-th."""
        usable = np.flatnonzero(self.read | self.later)
        ids = self.instances["id"][usable]
        step = max(len(ids), len(self.predictions["id"])) + 1
        read_pairs, prediction_pairs = (
            ids * step + occurrences(ids),
            self.predictions["id"] * step + occurrences(self.predictions["id"]),
        )
        _, instances, pairs = np.intersect1d(
            read_pairs, prediction_pairs, assume_unique=True, return_indices=True
        )
        return usable[instances], pairs

    def _learned(self) -> Bools:
        """Mark the feedback that counts: what the learner had read, each patient once."""
        topic = self.observed.topics.feedback(self.name)
        read = self.observed.within(topic, self.feedback)
        self.findings.count("feedback", len(self.feedback))
        self.findings.count("feedback_under_way", (~read).sum())
        plain = ~self.feedback["amends"]
        first = np.zeros(len(plain), np.bool_)
        first[plain] = first_of_each(self.feedback["id"][plain])
        self.corrected = read & ~plain
        return read & first

    def _counts(self) -> CellTable:
        again = counts_of(self.learner)
        whole = not self.observed.cut(self.observed.topics.feedback(self.name))
        live = self.state.counts["counts"]
        compare_tables(
            self.findings, f"{local(self.name)} counts", self.where, live, again, whole=whole
        )
        return again

    def _totals(self, counts: CellTable) -> Ints:
        """Compare the learner's totals with the topics, except for what no topic shows."""
        live = self.state.counts["totals"].rows(np.zeros(1, np.int64))[0]
        again = self._recounted(counts, live)
        note = "" if self.observed.whole else "not compared: the start of its topics is gone"
        self.findings.table(
            f"{local(self.name)} totals", self.where, values=len(again) - 1,
            differing=0 if note else int((live != again).sum()), note=note,
        )  # fmt: skip
        return again

    def early(self) -> Bools:
        """Mark the predictions on instances that were read by the time the state is from.

        A patient may come twice: as many of its predictions count as instances were read.
        """
        counts, ids = (
            count(self.instances["id"][self.read], self.observed.size),
            self.predictions["id"],
        )
        return np.asarray(occurrences(ids) < counts[ids])

    def _recounted(self, counts: CellTable, live: Ints) -> Ints:
        rows, predictions, early = self.instances["id"][self.read], self.predictions, self.early()
        again = np.zeros_like(live)
        again[LABELLED] = self.learner.iup.labelled
        again[INSTANCES] = len(rows)
        again[EXPLORED] = (predictions["exploring"] & early).sum()
        again[FORGOTTEN] = live[FORGOTTEN]
        again[THIN] = ((predictions["trials"] < FEW) & early).sum()
        again[CUBES] = len(counts)
        again[LOST] = local_regret_parts(counts.items()[1], len(self.learner.rules)).sum()
        decided = predictions["label"][early & (predictions["label"] >= 0)]
        again[PREDICTED:] = np.bincount(decided, minlength=len(again) - PREDICTED)
        return again


def counts_of(learner: LocalLearner) -> CellTable:
    """Return the counts of a learner as its state holds them."""
    table = table_for(None, learner.iup.phase(1).table.width)
    ids = PhaseIds(learner)
    for phase, counts in learner.iup.tables().items():
        cubes, rows = counts.items()
        table.put(ids.join(phase, cubes), rows)
    return table


def learn_again(audit: LocalAudit, learned: Bools) -> Taught:
    """Let the learner learn from the feedback again; return what its rules were taught."""
    columns, learner = audit.feedback, audit.learner
    taught = lessons_of(audit, learned)
    back = audit.corrected & (columns["was"] != MISSING)
    relabelled = audit.corrected & (columns["label"] != MISSING)
    learner.correct(_labelled(audit, back, "was"), _labelled(audit, relabelled, "label"))
    try:
        learner.learn(_labelled(audit, learned, "label"), taught.lessons)
    except RuleError:
        return taught._replace(failed=True)
    return taught


def _labelled(audit: LocalAudit, rows: Bools, label: str) -> Labelled:
    """Return what some feedback says, with one of its two labels."""
    columns = audit.feedback
    return Labelled(
        phase=columns["phase"][rows].astype(np.int64),
        cubes=columns["cube"][rows],
        rules=columns["rule"][rows].astype(np.int64),
        votes=_votes(audit, rows),
        truth=columns[label][rows].astype(np.int64),
    )


def _votes(audit: LocalAudit, learned: Bools) -> Ints:
    """Return (n, F) the rules' labels, where the learner's feedback tells them."""
    predicted, width = audit.feedback["predicted"][learned], len(audit.learner.rules)
    own: Ints = np.maximum(np.repeat(predicted[:, None], width, axis=1), MISSING)
    if audit.observed.settings.learners[audit.name].feedback != "full" or not len(own):
        return own
    unsent = (MISSING,) * width
    codebook = [
        votes if len(votes) == width else unsent for votes in audit.observed.logs.names.votes
    ]
    codes = audit.feedback["votes"][learned]
    # Where no votes travelled, all rules count as the learner's own prediction, as in the agent.
    sent: Ints = np.array([*codebook, unsent])[codes]
    return np.where(codes[:, None] == NONE, own, sent)
