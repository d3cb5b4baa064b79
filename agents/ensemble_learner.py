"""The agent of the ensemble learner: predictions and labels in, diagnoses and feedback out.

Everything about joining, fusing and learning is in `learners.ensemble`; this module decodes, keeps
the state in tables, and encodes. One batch holds records of one topic, as the engine delivers them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.contexts import ContextReader
from agents.packing import ENTRIES, pack, pack_state, unpack, unpack_state
from agents.reports import Reports
from learners.ensemble import EnsembleLearner, Outcome
from learners.ledger import Event, JoinRules, Label, Prediction, Reject
from learners.types import Ints
from schemas.errors import RecordError
from schemas.labels import LabelReader
from schemas.readers import Reader
from schemas.reasons import Reason
from schemas.records import Prediction as PredictionRecord
from streams.build import fusion
from streams.settings import Settings, milliseconds
from streams.state.counts import CountsTable
from streams.state.entries import EntriesTable
from streams.state.replica import Others
from streams.state.table import Table
from streams.tasks.batch import Batch
from streams.tasks.outbox import Outbox
from streams.tasks.processor import AgentSpec, Processor, TaskContext
from streams.topics import ENSEMBLE, Topics

_HEAD = b"ledger"
_WINDOW = b"window"


def join_rules(settings: Settings) -> JoinRules:
    """Return the rules of the join that the settings name."""
    ensemble = settings.ensemble
    return JoinRules(
        learners=len(settings.learners),
        fusion_timeout=milliseconds(ensemble.fusion_timeout),
        label_ttl=milliseconds(ensemble.label_ttl),
        contextual=ensemble.context is not None,
        max_pending=ensemble.max_pending,
        max_remembered=ensemble.max_remembered,
    )


def ensemble_learner(settings: Settings) -> EnsembleLearner:
    """Return the untaught ensemble learner of the settings."""
    context = settings.ensemble.context
    unheard = context.partition().size if context else 0
    return EnsembleLearner(fusion(settings), join_rules(settings), unheard=unheard, codec=ENTRIES)


def spec(settings: Settings) -> AgentSpec:
    """Describe the agent to the engine."""
    topics = Topics.of(settings)
    probe = ensemble_learner(settings)
    contexts = (topics.contexts,) if topics.contextual else ()

    def tables() -> list[Table]:
        return [
            EntriesTable("pending"),
            EntriesTable("head"),
            *(
                CountsTable(
                    _fused(name),
                    table.width,
                    dtype=table.dtype,
                    initial=table.initial.tolist(),
                    adds=table.dtype.kind == "i" and not table.initial.any(),
                )
                for name, table in probe.fusion.tables().items()
            ),
            CountsTable("scores", probe.scores.width),
            CountsTable("regret", probe.regret.width),
        ]

    return AgentSpec(
        ENSEMBLE,
        (topics.predictions, topics.labels, *contexts),
        tables,
        lambda context: EnsembleProcessor(settings, context),
        follow=settings.topics.partitions > 1,
    )


def _fused(name: str) -> str:
    return "fusion_" + name.replace(".", "_").replace("-", "_")


class EnsembleProcessor(Processor):
    """One partition of the ensemble learner."""

    def __init__(self, settings: Settings, context: TaskContext) -> None:
        self.learner = ensemble_learner(settings)
        self._topics = Topics.of(settings)
        self._labels = settings.labels
        self._label_index = {label: i for i, label in enumerate(settings.labels)}
        self._positive = settings.labels.index(settings.positive)
        self._names = list(settings.learners)
        self._name_index = {name: i for i, name in enumerate(self._names)}
        self._reports = Reports(settings, self.learner.fusion.experts(self._names))
        self._tables: Mapping[str, Any] = context.tables
        self._read_predictions = Reader(
            PredictionRecord, known={"label": settings.labels, "learner": self._names}
        )
        self._read_labels = LabelReader(settings.labels)
        self._contexts = ContextReader(settings) if settings.ensemble.context else None
        self._batch: Batch | None = None
        self._restore()
        if context.others is not None:
            self._others: Others = context.others
            self.learner.judge = fusion(settings)
            self.learner.refresh = self._pool

    # State.

    def _counted(self) -> dict[str, Any]:
        learner = self.learner
        named = {_fused(name): table for name, table in learner.fusion.tables().items()}
        return {**named, "scores": learner.scores, "regret": learner.regret}

    def _restore(self) -> None:
        for name, table in self._counted().items():
            table.put(*self._tables[name].items())
        head, pending = self._tables["head"], self._tables["pending"]
        found = head.get(_HEAD)
        if found is not None:
            entries = ((key.decode(), value) for key, value in pending.items())
            self.learner.ledger.restore(unpack(found), entries)
        window = head.get(_WINDOW)
        if window is not None:
            self.learner.window.restore(unpack_state(window))

    def _write(self, outcome: Outcome) -> None:
        ledger, pending = self.learner.ledger, self._tables["pending"]
        for name in ledger.touched():
            entry = ledger.dump(name)
            if entry is None:
                pending.delete(name.encode())
            else:
                pending.put(name.encode(), entry)
        self._tables["head"].put(_HEAD, pack(ledger.dump_head()))
        if outcome.settled:
            self._tables["head"].put(_WINDOW, pack_state(self.learner.window.state()))
            scopes = np.arange(1 + len(self._names))
            for name, table in self._counted().items():
                cells = scopes if name == "scores" else outcome.cells
                self._tables[name].put(cells, table.rows(cells))

    def _pool(self, cells: Ints) -> None:
        """Let the deciding fusion rule know what all partitions learned about some cubes."""
        own, judge = self.learner.fusion.tables(), self.learner.judge
        for name, table in judge.tables().items():
            rows = [own[name].rows(cells), *self._others.parts(_fused(name), cells)]
            table.put(cells, judge.pooled(name, np.stack(rows)))

    # Work.

    def process(self, batch: Batch, out: Outbox) -> None:
        """Handle predictions, labels or contexts."""
        if batch.topic == self._topics.predictions:
            events, errors = self._predicted(batch)
        elif batch.topic == self._topics.labels:
            events, errors = self._labelled(batch)
        else:
            assert self._contexts is not None  # noqa: S101 - no such topic without contexts
            events, errors = self._contexts.read(batch)
        for position, error in errors:
            out.dead(batch, position, error)
        self._batch = batch
        self._take(events, 0, out)
        self._batch = None

    def tick(self, now: int, out: Outbox) -> None:
        """Let time pass: fusion time-outs and labels that will not come any more."""
        if now > self.learner.ledger.clock and self.learner.ledger.pending:
            self._take([], now, out)

    def _take(self, events: list[Event], now: int, out: Outbox) -> None:
        outcome = self.learner.take(events, now)
        self._reports.send_diagnoses(outcome, out)
        self._reports.send_feedback(outcome.settled, out)
        for rejection in outcome.rejections:
            self._send_dead(rejection, out)
        self._write(outcome)

    def _predicted(self, batch: Batch) -> tuple[list[Event], Sequence[Any]]:
        read = self._read_predictions.read(batch.values)
        index, labels = self._name_index, self._label_index
        events: list[Event] = []
        errors = list(read.errors)
        for position, r in zip(read.positions, read.records, strict=True):
            odds = self._odds(r.log_odds)
            if odds is not None and len(odds) != len(labels):
                expected = f"log_odds: expected {len(labels)} entries, or one of two labels"
                errors.append((position, RecordError(Reason.WRONG_DIMENSION, expected)))
                continue
            payload = (
                r.exploring, r.accuracy, odds, r.rule, r.trials, r.low, r.high, r.epsilon,
                r.phase, r.cube, r.votes,
            )  # fmt: skip
            events.append(
                Prediction(
                    batch.timestamps[position], r.id, index[r.learner], labels[r.label], payload
                )
            )
        return events, errors

    def _odds(self, sent: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Return log-odds for every label; of two labels the positive one's alone may be sent."""
        if sent is None or len(sent) != 1 or len(self._labels) != 2:
            return sent
        return (-sent[0], sent[0]) if self._positive else (sent[0], -sent[0])

    def _labelled(self, batch: Batch) -> tuple[list[Event], Sequence[Any]]:
        read = self._read_labels.read(batch.values)
        events: list[Event] = [
            Label(batch.timestamps[i], name, label, (batch.offsets[i], batch.values[i]))
            for i, name, label in zip(read.positions, read.ids, read.labels, strict=True)
        ]
        return events, read.errors

    # Outputs.

    def _send_dead(self, rejection: Reject, out: Outbox) -> None:
        """Send an event that cannot be used to the dead letters, as it came."""
        event, reason = rejection.event, Reason[rejection.reason.name]
        error = RecordError(reason, reason.meaning)
        if isinstance(event, Prediction):
            # Only one that is new in this batch can be rejected: it has not been kept at all.
            assert self._batch is not None  # noqa: S101 - time alone rejects no prediction
            out.dead(self._batch, self._place(self._batch, event), error)
            return
        topic = self._topics.labels if isinstance(event, Label) else self._topics.contexts
        offset, value = event.payload[-2:]
        key = event.id.encode()
        out.dead_record(error, topic, offset, timestamp=event.at, key=key, value=value)

    def _place(self, batch: Batch, event: Prediction) -> int:
        """Return where in the batch a prediction stands."""
        read = self._read_predictions.read(batch.values)
        wanted = event.id, self._names[event.learner]
        found = zip(read.positions, read.records, strict=True)
        return next(k for k, record in found if (record.id, record.learner) == wanted)
