"""The agent of one local learner: instances in, predictions out, feedback learned.

    instances.<ll>   decode, decide, keep the features if a rule will learn from them, emit
    feedback.<ll>    decode, learn, drop the features

Everything about learning is in `learners.local`; this module moves it between topics and tables.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from agents.kept import Kept
from agents.packing import pack_state, unpack_state
from agents.pooling import LEARNED, OtherCounts, PhaseIds, RulePool
from learners.features import FeatureSpace
from learners.local import Confidence, Predictions
from learners.rules.base import LearningRule, RuleError
from learners.seeds import seeds_of
from learners.types import Floats
from schemas.codec import encode_all
from schemas.errors import RecordError
from schemas.readers import Reader
from schemas.reasons import Reason
from schemas.records import Feedback, Prediction
from schemas.rows import Feature, RowReader
from streams.build import local_learner
from streams.settings import Settings
from streams.state.counts import CountsTable
from streams.state.entries import EntriesTable
from streams.state.table import Table
from streams.tasks.batch import Batch
from streams.tasks.outbox import Outbox
from streams.tasks.processor import AgentSpec, Processor, TaskContext
from streams.topics import Topics, local

LABELLED, INSTANCES, EXPLORED, FORGOTTEN = range(4)
"""Columns of the totals: labels learned, instances decided, of them explored, features given up."""
TOTALS = 4
UNCOUNTABLE = RecordError(Reason.OUT_OF_RANGE, "phase, cube: expected those of a prediction")


def spec(settings: Settings, name: str) -> AgentSpec:
    """Describe the agent of one local learner to the engine."""
    topics = Topics.of(settings)
    probe = local_learner(settings, name)
    width = probe.iup.phase(1).table.width

    def tables() -> list[Table]:
        made: list[Table] = [CountsTable("counts", width), CountsTable("totals", TOTALS, cells=1)]
        if probe.learns:
            made += [EntriesTable("features"), EntriesTable("models", shared=True)]
        return made

    return AgentSpec(
        local(name),
        (topics.instances(name), topics.feedback(name)),
        tables,
        lambda context: LocalProcessor(settings, name, context),
        follow=settings.topics.partitions > 1,
    )


class LocalProcessor(Processor):
    """One partition of a local learner."""

    def __init__(self, settings: Settings, name: str, context: TaskContext) -> None:
        self.name = name
        self.learner = local_learner(settings, name)
        self._topics = Topics.of(settings)
        self._labels = settings.labels
        self._positive = settings.labels.index(settings.positive)
        self._label_index = {label: i for i, label in enumerate(settings.labels)}
        self._rules = list(settings.learners[name].rules)
        self._rule_index = {rule: i for i, rule in enumerate(self._rules)}
        self._full = settings.learners[name].feedback == "full"
        self._instances = RowReader(readable(self.learner.space))
        known = {"label": settings.labels, "predicted": settings.labels, "rule": self._rules}
        self._feedback = Reader(Feedback, known=known)
        self._counts: CountsTable = context.tables["counts"]
        self._totals: CountsTable = context.tables["totals"]
        self._kept = Kept(context.tables.get("features"), settings, self.learner.space.d)
        self._models: EntriesTable | None = context.tables.get("models")
        self._ids = PhaseIds(self.learner)
        self._taught = 0
        self._untaught = {rule.name: rule.state() for rule in self._learning()}
        self._restore()
        self._pool: RulePool | None = None
        if context.others is not None:
            self.learner.iup.elsewhere = OtherCounts(context.others, self._ids, LABELLED)
            if self._models is not None:
                self._pool = RulePool(settings, name, context.others, self._models)

    def _restore(self) -> None:
        self.learner.iup.labelled = int(self._totals.rows(np.zeros(1, np.int64))[0, LABELLED])
        cells, rows = self._counts.items()
        for phase, of, cubes in self._ids.split(cells):
            self.learner.iup.restore(phase, cubes, rows[of])
        self._restore_rules()

    def _restore_rules(self) -> None:
        for rule in self._learning():
            assert self._models is not None  # noqa: S101 - the tables were made for these rules
            found = self._models.get(rule.name.encode())
            if found is None:
                rule.restore(self._untaught[rule.name])
            else:
                state = unpack_state(found)
                self._taught = int(state.pop(LEARNED))
                rule.restore(state)

    def _learning(self) -> list[LearningRule]:
        return [rule for rule in self.learner.rules if isinstance(rule, LearningRule)]

    def process(self, batch: Batch, out: Outbox) -> None:
        """Handle instances or feedback."""
        if batch.topic == self._topics.instances(self.name):
            self._decide(batch, out)
        else:
            self._learn(batch, out)

    def tick(self, now: int, out: Outbox) -> None:
        """Give up features whose label did not come."""
        del out
        self._count(FORGOTTEN, self._kept.expire(now))

    # Instances.

    def _decide(self, batch: Batch, out: Outbox) -> None:
        read = self._instances.read(batch.values)
        for position, error in read.errors:
            out.dead(batch, position, error)
        if not read.ids:
            return
        rows = np.array(read.rows, np.float64)
        try:
            pooled = None if self._pool is None else self._pool.rules(self.learner)
            said = self.learner.decide(rows, seeds_of(read.ids), pooled)
        except RuleError as error:
            # The batch cannot be decided; the learner lives on with the next one.
            failure = RecordError(Reason.RULE_FAILED, str(error))
            for position in read.positions:
                out.dead(batch, position, failure)
            return
        times = [batch.timestamps[i] for i in read.positions]
        records = self._predictions(read.ids, read.at, said)
        out.emit_many(
            self._topics.predictions, [i.encode() for i in read.ids], encode_all(records), times
        )
        self._kept.keep(read.ids, rows, times)
        self._count(FORGOTTEN, self._kept.expire(times[-1]))
        self._count(INSTANCES, len(read.ids))
        self._count(EXPLORED, int(said.choices.exploring.sum()))

    def _predictions(
        self, ids: Sequence[str], at: Sequence[int], said: Predictions
    ) -> list[Prediction]:
        chosen, sure = said.choices, self.learner.confidence(said.choices)
        votes = self._votes(said)
        odds = self._odds(said.log_odds)
        columns = zip(
            ids,
            [self._labels[i] for i in said.labels.tolist()],
            map(str, chosen.cubes.tolist()),
            [self._rules[i] for i in chosen.rules.tolist()],
            chosen.exploring.tolist(),
            chosen.trials.tolist(),
            at,
            *_sure(sure),
            votes,
            odds,
            strict=True,
        )
        name, phase = self.name, chosen.phase
        return [Prediction(i, name, label, phase, cube, *rest) for i, label, cube, *rest in columns]

    def _votes(self, said: Predictions) -> list[dict[str, str] | None]:
        if not self._full:
            return [None] * len(said.labels)
        named = [[self._labels[i] for i in row] for row in said.votes.tolist()]
        return [dict(zip(self._rules, row, strict=True)) for row in named]

    def _odds(self, log_odds: Floats) -> list[tuple[float, ...] | None]:
        if np.isnan(log_odds).all():
            return [None] * len(log_odds)
        wire = log_odds[:, [self._positive]] if len(self._labels) == 2 else log_odds
        return [tuple(row) if isfinite(row[0]) else None for row in wire.tolist()]

    # Feedback.

    def _learn(self, batch: Batch, out: Outbox) -> None:
        read = self._feedback.read(batch.values)
        for position, error in read.errors:
            out.dead(batch, position, error)
        found = []
        for position, record in zip(read.positions, read.records, strict=True):
            if self._countable(record):
                found.append((position, record))
            else:
                out.dead(batch, position, UNCOUNTABLE)
        if not found:
            return
        records = [record for _, record in found]
        phases = np.array([r.phase for r in records], np.int64)
        cubes = np.array([int(r.cube) for r in records], np.int64)
        truth = np.array([self._label_index[r.label] for r in records], np.int64)
        self.learner.iup.learn(phases, cubes, self._chosen(records), self._correct(records, truth))
        self._write(phases, cubes)
        self._count(LABELLED, len(records))
        try:
            self._teach(records, truth)
        except RuleError as error:
            # The batch is counted; its rows teach nobody, and the rules go on from before it.
            self._restore_rules()
            failure = RecordError(Reason.RULE_FAILED, str(error))
            for position, _ in found:
                out.dead(batch, position, failure)

    def _countable(self, record: Feedback) -> bool:
        """Tell whether a feedback is about a cube that this learner has."""
        iup = self.learner.iup
        if not 1 <= record.phase <= iup.current:
            return False
        return int(record.cube) < iup.phase(record.phase).partition.size

    def _chosen(self, records: Sequence[Feedback]) -> Any:
        return np.array([self._rule_index[r.rule] for r in records], np.int64)

    def _correct(self, records: Sequence[Feedback], truth: Any) -> Any:
        """Return (n, F): whether each rule was right; a bandit hears of the chosen one only."""
        if not self._full:
            predicted = np.array([self._label_index[r.predicted] for r in records], np.int64)
            return np.repeat((predicted == truth)[:, None], len(self._rules), axis=1)
        votes = [
            [self._label_index[(r.votes or {}).get(rule, r.predicted)] for rule in self._rules]
            for r in records
        ]
        return np.array(votes, np.int64) == truth[:, None]

    def _teach(self, records: Sequence[Feedback], truth: Any) -> None:
        learning = self._learning()
        if not learning:
            return
        found = [(k, row) for k, r in enumerate(records) if (row := self._kept.pop(r.id))]
        if not found:
            return
        rows = np.frombuffer(b"".join(row for _, row in found), np.float64)
        rows = rows.reshape(len(found), self.learner.space.d)
        labels = truth[[k for k, _ in found]]
        for rule in learning:
            rule.learn(rows, labels)
        self._taught += len(found)
        for rule in learning:
            assert self._models is not None  # noqa: S101 - the tables were made for these rules
            state = {**rule.state(), LEARNED: np.array(self._taught)}
            self._models.put(rule.name.encode(), pack_state(state))

    def _write(self, phases: Any, cubes: Any) -> None:
        for phase in np.unique(phases).tolist():
            changed = np.unique(cubes[phases == phase])
            rows = self.learner.iup.phase(phase).table.rows(changed)
            self._counts.put(self._ids.join(phase, changed), rows)

    def _count(self, column: int, amount: int) -> None:
        if amount:
            place = self._totals.claim(np.zeros(1, np.int64))
            self._totals.bump(place, column, amount)


def readable(space: FeatureSpace) -> list[Feature]:
    """Return features as readers know them."""
    return [
        Feature(feature.name, getattr(feature, "categories", None)) for feature in space.features
    ]


def _sure(sure: Confidence) -> list[list[float | None]]:
    """Return accuracy, low, high and epsilon as records hold them: None where unknown."""
    columns = (sure.accuracy, sure.low, sure.high, sure.epsilon)
    return [[value if isfinite(value) else None for value in column.tolist()] for column in columns]
