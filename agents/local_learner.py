"""The agent of one local learner: instances in, predictions out, feedback learned.

    instances.<ll>   decode, decide, keep the features if a rule will learn from them, emit (also
                     the reasons, if switched on)
    feedback.<ll>    decode, learn, drop the features; among it, erasures: drop the features

Everything about learning is in `learners.local.learner`; this module moves it between topics and
tables.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np

from agents.agent_metrics import READ, SAID
from agents.erasures import PASSED_ON, TABLE, Erased
from agents.log_odds import LogOddsFormat
from agents.models import Models, model_tables
from agents.pooling import (
    BEGAN,
    EARLIER_FORM,
    FILLING,
    FORM,
    LEARNED,
    OtherCounts,
    PhaseIds,
    RulePool,
)
from agents.prediction_records import PredictionRecords
from agents.reason_records import ReasonRecords
from agents.record_checks import at_home
from agents.sealing import instance_opener
from agents.state_signing import signer_of
from agents.totals import FORGOTTEN, LABELLED, LocalTotals, local_width
from agents.waiting_features import WaitingFeatures
from learners.arrays.seeds import seeds_of
from learners.arrays.types import MISSING, Floats, Ints, Seeds, State
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.local.learner import Checkpoint, Labelled, Lessons, Pooled, Predictions, opinion
from learners.local.reasons import Reasons, reasons
from learners.rules.base import LearningRule, RuleError
from learners.rules.calls import CURRENT, RuleHangs
from learners.rules.failing_rows import sift
from learners.theory.promises import confidence
from schemas.errors import RecordError
from schemas.reading import Batch as ReadBatch
from schemas.reading import Reader
from schemas.records import Feedback
from schemas.refusals import Reason
from schemas.rows import Feature, RowReader
from schemas.traces import carried, traces
from schemas.writing import encode_all
from settings.building import local_learner
from settings.fingerprint import learner_meaning
from settings.model import Settings
from streams.engine.api import AgentSpec, Processor, TaskContext
from streams.engine.errors import FinalError
from streams.engine.outbox import Outbox
from streams.engine.state.counts import CountsTable
from streams.engine.state.entries import EntriesTable
from streams.engine.state.table import Table, reading
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics, local

UNCOUNTABLE = RecordError(
    Reason.OUT_OF_RANGE, "phase, cube, label: expected those of a prediction, and a label"
)
UNHEARD = RecordError(
    Reason.WRONG_DIMENSION, "others, log_odds: expected one entry per label, or one of two"
)


def spec(settings: Settings, name: str) -> AgentSpec:
    """Describe the agent of one local learner to the engine."""
    topics = Topics.of(settings)
    probe = local_learner(settings, name)
    width = probe.iup.phase(1).table.width

    def tables() -> list[Table]:
        declared: list[Table] = [
            CountsTable("counts", width),
            CountsTable("totals", local_width(settings), cells=1),
            EntriesTable(TABLE, erasing=True),
        ]
        if probe.learns:
            declared += [EntriesTable("features"), *model_tables()]
        return declared

    return AgentSpec(
        local(name),
        (topics.instances(name), topics.feedback(name)),
        tables,
        lambda context: LocalProcessor(settings, name, context),
        follow=settings.topics.partitions > 1,
        meaning=learner_meaning(settings, name),
        deadletters=topics.deadletter_of(name),
        signer=signer_of(settings, name),
    )


class LocalProcessor(Processor):
    """One partition of a local learner."""

    def __init__(self, settings: Settings, name: str, context: TaskContext) -> None:
        self.name = name
        self.learner = local_learner(settings, name)
        self._topics = Topics.of(settings)
        self._predictions = PredictionRecords(settings, name)
        self._reasons = ReasonRecords(settings, name) if settings.learners[name].reasons else None
        self._log_odds = LogOddsFormat(settings)
        self._label_index: dict[str | None, int] = {
            **{label: i for i, label in enumerate(settings.labels)},
            None: MISSING,
        }
        self._rules = list(settings.learners[name].rules)
        self._rule_index = {rule: i for i, rule in enumerate(self._rules)}
        self._full = settings.learners[name].feedback == "full"
        home = at_home(settings, context.partition)
        opener = instance_opener(settings, name)
        self._instances = RowReader(readable(self.learner.space), [home], opener)
        labels = settings.labels
        known = {"label": labels, "predicted": labels, "was": labels, "rule": self._rules}
        self._feedback = Reader(Feedback, known=known, checks=[home])
        self._counts: CountsTable = context.tables["counts"]
        self._totals = LocalTotals(context.tables["totals"], len(self._rules))
        self._features = WaitingFeatures(context.tables.get("features"), settings, name)
        self._erased = Erased(context.tables[TABLE])
        self._models: Models | None = None
        if self.learner.learns:
            with reading(f"the models of learner {name}"):
                self._models = Models(context.tables, settings, name)
        self._ids = PhaseIds(self.learner)
        self._counted: list[Any] = []
        self._taught = 0
        self._began: dict[str, int] = {}
        self._untaught = {rule.name: rule.state() for rule in self.learner.learning_rules}
        self._restore()
        self._pool: RulePool | None = None
        if context.others is not None:
            self.learner.iup.elsewhere = OtherCounts(context.others, self._ids, LABELLED)
            if self._models is not None:
                self._pool = RulePool(settings, name, context.others, self._models)

    def _restore(self) -> None:
        with reading(f"the state of learner {self.name}"):
            self.learner.iup.labelled = self._totals.read(LABELLED)
            cells, rows = self._counts.items()
            for phase, of, cubes in self._ids.split(cells):
                self.learner.iup.restore(phase, cubes, rows[of])
            self._restore_rules()

    def _restore_rules(self) -> None:
        if self._models is None:
            return
        self.learner.filling.restore(self._models.get(FILLING) or {})
        for rule in self.learner.learning_rules:
            stored = self._models.get(rule.name.encode())
            if stored is None:
                rule.restore(self._untaught[rule.name])
                self._began[rule.name] = FORM
            else:
                self._restore_rule(rule, stored)

    def _restore_rule(self, rule: LearningRule, state: State) -> None:
        try:
            self._taught = int(state.pop(LEARNED))
            began = state.pop(BEGAN, None)
            rule.restore(state)
        except LearnerError as error:
            raise FinalError(f"learner {self.name}: {error}") from None
        self._began[rule.name] = EARLIER_FORM if began is None else int(began)
        if began is None:  # what it kept of patients' values is dropped now
            self._keep(rule)

    def process(self, batch: Batch, out: Outbox) -> None:
        """Handle instances or feedback."""
        try:
            if batch.topic == self._topics.instances(self.name):
                self._decide(batch, out)
            else:
                self._learn(batch, out)
        except RuleHangs:
            # We cannot tell which row it was, and every retry would cost the worker its place in
            # the group.
            raise FinalError(
                f"rule {CURRENT.rule} of learner {self.name} does not return; correct it, or"
                " remove it from the settings"
            ) from None

    def tick(self, now: int, out: Outbox) -> None:
        """Drop features whose label did not come."""
        del out
        self._totals.count(FORGOTTEN, self._features.expire(now))

    # Instances.

    def _decide(self, batch: Batch, out: Outbox) -> None:
        out.notes.count(READ, len(batch))
        read = self._instances.read(batch.values)
        for position, error in read.errors:
            out.dead(batch, position, error)
        if len(self._erased):
            read = read.only([k for k, name in enumerate(read.ids) if name not in self._erased])
        if not read.ids:
            return
        count, d = len(read.ids), self.learner.space.d
        rows = np.fromiter(chain.from_iterable(read.rows), np.float64, count * d).reshape(count, d)
        times, seeds = [batch.timestamps[i] for i in read.positions], seeds_of(read.ids)
        traced = traces(batch.headers)
        decided, failed = sift(count, lambda part: self._decide_rows(rows[part], seeds[part]))
        for part, (predictions, why) in decided:
            ids = read.ids[part]
            sure = confidence(self.learner, predictions.choices)
            records = self._predictions.records(
                ids,
                read.at[part],
                read.subjects[part],
                predictions,
                sure,
                history=read.history[part],
                learned=self.learner.iup.labelled,
            )
            values = encode_all(records)
            keys = [name.encode() for name in ids]
            headers = carried(traced, read.positions[part])
            out.emit_many(self._topics.predictions, keys, values, times[part], headers=headers)
            if self._reasons is not None and why is not None:
                reasons_given = self._reasons.records(ids, read.at[part], predictions, why)
                of, when = why.at.tolist(), times[part]
                out.emit_many(
                    self._topics.reasons(self.name),
                    [keys[k] for k in of],
                    encode_all(reasons_given),
                    [when[k] for k in of],
                    urgent=False,
                )
            self._features.keep(ids, rows[part], times[part])
            self._totals.decided(predictions)
            out.notes.count(SAID, len(values))
        self._totals.count(FORGOTTEN, self._features.expire(times[-1]))
        self._refuse(batch, [(read.positions[row], error) for row, error in failed], out)

    def _decide_rows(self, rows: Floats, seeds: Seeds) -> tuple[Predictions, Reasons | None]:
        """Decide, and say why if that is wanted."""
        pooled = self._pooled()
        predictions = self.learner.decide(rows, seeds, pooled)
        if self._reasons is None:
            return predictions, None
        return predictions, reasons(
            pooled or Pooled(self.learner.rules, self.learner.filling), rows, predictions
        )

    def _pooled(self) -> Pooled | None:
        """Return what all partitions learned together, if there are several."""
        return None if self._pool is None else self._pool.pooled(self.learner)

    @staticmethod
    def _refuse(batch: Batch, failed: Iterable[tuple[int, RuleError]], out: Outbox) -> None:
        for position, error in failed:
            out.dead(batch, position, RecordError(Reason.RULE_FAILED, str(error)))

    # Feedback.

    def _learn(self, batch: Batch, out: Outbox) -> None:
        passed_on: list[int] = []
        if PASSED_ON in batch.keys:
            passed_on = [i for i, key in enumerate(batch.keys) if key == PASSED_ON]
        read = self._feedback.read(batch.values)
        for position, error in read.errors:
            if position not in passed_on:
                out.dead(batch, position, error)
        positions, records = self._usable(batch, read, out)
        if records:
            self._learn_from(batch, positions, records, out)
        if passed_on:  # everything to learn from an erased patient came earlier
            self._erase(batch, passed_on, out)

    def _erase(self, batch: Batch, positions: Sequence[int], out: Outbox) -> None:
        """Drop the features of erased patients; note whether any were waiting."""
        digests, errors = self._erased.read(batch, positions)
        for position, error in errors:
            out.dead(batch, position, error)
        names = Erased.named(digests, self._features.ids()) if digests else {}
        for digest in digests:
            waited = digest in names and self._features.drop(names[digest])
            self._erased.note(digest, waited)
            self._totals.count(FORGOTTEN, waited)

    def _learn_from(
        self, batch: Batch, positions: list[int], records: list[Feedback], out: Outbox
    ) -> None:
        lessons = records
        if any(r.amends for r in records):
            self._correct([r for r in records if r.amends])
            first = [k for k, r in enumerate(records) if not r.amends]
            lessons, positions = [records[k] for k in first], [positions[k] for k in first]
        if not lessons:
            return
        labelled = self._labelled(lessons, [r.label for r in lessons])
        self._note(labelled)
        at, features = self._taken(lessons)
        # A record that a rule fails on is still counted, but it teaches nothing.
        failed = self.learner.learn(
            labelled,
            self._lessons(features, labelled.truth[at], [lessons[k] for k in at]),
            Checkpoint(self._save_rules, self._restore_rules),
        )
        self._refuse(batch, [(positions[at[k]], error) for k, error in failed], out)

    def _correct(self, records: Sequence[Feedback]) -> None:
        """Take back what labels counted that were amended or withdrawn, and recount them."""
        known = [r for r in records if r.was is not None]
        again = [r for r in records if r.label is not None]
        back = self._labelled(known, [r.was for r in known])
        relabelled = self._labelled(again, [r.label for r in again])
        self._note(back, -1)
        self._note(relabelled)
        self.learner.correct(back, relabelled)

    def _note(self, labelled: Labelled, sign: int = 1) -> None:
        """Note which cubes will change, and how many labels there are."""
        self._counted.append((labelled.phase, labelled.cubes))
        self._totals.count(LABELLED, sign * len(labelled.truth))

    def _usable(
        self, batch: Batch, read: ReadBatch[Feedback], out: Outbox
    ) -> tuple[list[int], list[Feedback]]:
        """Return the feedback that is about this learner; the rest goes to the dead letters."""
        iup = self.learner.iup
        # Withdrawn labels may have set the clock back: a later phase that had begun is still valid.
        last = max(iup.current, *iup.tables())
        grids = {n: iup.phase(n).partition.grid for n in range(1, last + 1)}
        known = [
            r.phase in grids and grids[r.phase].holds(int(r.cube)) and (r.amends or bool(r.label))
            for r in read.records
        ]
        fits = self._log_odds.fits
        good = [
            fine and ((r.others is r.log_odds is None) or (fits(r.others) and fits(r.log_odds)))
            for fine, r in zip(known, read.records, strict=True)
        ]
        if all(good):
            return read.positions, read.records
        for position, fine, fit in zip(read.positions, known, good, strict=True):
            if not fit:
                out.dead(batch, position, UNHEARD if fine else UNCOUNTABLE)
        return list(compress(read.positions, good)), list(compress(read.records, good))

    def _labelled(self, records: Sequence[Feedback], labels: Sequence[str | None]) -> Labelled:
        return Labelled(
            phase=np.array([r.phase for r in records], np.int64),
            cubes=np.array([int(r.cube) for r in records], np.int64),
            rules=np.array([self._rule_index[r.rule] for r in records], np.int64),
            votes=self._votes(records),
            truth=np.array([self._label_index[label] for label in labels], np.int64),
        )

    def _votes(self, records: Sequence[Feedback]) -> Ints:
        """Return (n, F) each rule's label; a bandit is told that of the chosen one only."""
        index, rules = self._label_index, self._rules
        if not self._full:
            predicted = np.array([index[r.predicted] for r in records], np.int64)
            return np.repeat(predicted[:, None], len(rules), axis=1)
        votes = [
            [index[r.predicted]] * len(rules)
            if r.votes is None
            else [index[r.votes.get(rule)] for rule in rules]
            for r in records
        ]
        return np.array(votes, np.int64)

    def _taken(self, records: Sequence[Feedback]) -> tuple[list[int], Floats]:
        """Take the features out that waited for these labels; return of which records they are."""
        d = self.learner.space.d
        if not self.learner.learns:
            return [], np.empty((0, d))
        waited = [(k, row) for k, r in enumerate(records) if (row := self._features.pop(r.id))]
        rows = np.frombuffer(b"".join(row for _, row in waited), np.float64)
        return [k for k, _ in waited], rows.reshape(len(waited), d)

    def _save_rules(self, lessons: int) -> None:
        """Write what the rules have learned."""
        self._taught += lessons
        assert self._models is not None  # noqa: S101 - the tables were made for these rules
        if self.learner.filling.begun:
            self._models.put(FILLING, self.learner.filling.state())
        for rule in self.learner.learning_rules:
            self._keep(rule)

    def _keep(self, rule: LearningRule) -> None:
        """Write the state of a rule to its table."""
        assert self._models is not None  # noqa: S101 - the tables were made for these rules
        own = {LEARNED: np.array(self._taught), BEGAN: np.array(self._began[rule.name])}
        self._models.put(rule.name.encode(), {**rule.state(), **own})

    def _lessons(self, rows: Floats, truth: Ints, records: Sequence[Feedback]) -> Lessons:
        """Return what the rules are taught; other learners that sent nothing count as zero."""
        if not self.learner.joint:
            return Lessons(rows, truth)
        others = np.nan_to_num(self._log_odds.hear([r.others for r in records]))
        labels = np.array([self._label_index[r.predicted] for r in records], np.int64)
        own = opinion(self._log_odds.hear([r.log_odds for r in records]), labels)
        chosen = np.array([self._rule_index[r.rule] for r in records], np.int64)
        return Lessons(rows, truth, others, own, chosen)

    def save(self) -> None:
        """Write the counts that changed to their table."""
        if self._counted:
            phases, cubes = map(np.concatenate, zip(*self._counted, strict=True))
            self._counted = []
            for phase in np.unique(phases).tolist():
                changed = np.unique(cubes[phases == phase])
                rows = self.learner.iup.phase(phase).table.rows(changed)
                self._totals.learned(self._counts, self._ids.join(phase, changed), rows)


def readable(space: FeatureSpace) -> list[Feature]:
    """Return features in the form that readers use."""
    return [
        Feature(feature.name, getattr(feature, "categories", None), feature.required)
        for feature in space.features
    ]
