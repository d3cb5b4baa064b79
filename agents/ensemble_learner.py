"""The agent of the ensemble learner: predictions and labels in, diagnoses and feedback out.

Everything about joining, fusing and learning is in `learners.ensemble`; this module decodes, keeps
the state in tables, and encodes. One batch holds records of one topic, as the engine delivers them.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents.agent_metrics import ARRIVED, COMPLETE, DELAYS, INCOMPLETE, SHRUNK
from agents.contexts import ContextReader
from agents.ensemble_outputs import EnsembleOutputs
from agents.erasures import PASSED_ON, TABLE, Erased, erasure
from agents.live_learners import LiveLearners, Liveness
from agents.log_odds import LogOddsFormat
from agents.record_checks import at_home, predictable
from agents.state_encoding import ENTRIES, pack, unpack
from agents.state_signing import signer_of
from agents.totals import AmendmentTotals, EnsembleTotals
from learners.arrays.types import ABSTAINED, MISSING, Ints
from learners.ensemble import EnsembleLearner, Experience, Outcome
from learners.join import Codec, Context, Erase, Event, JoinRules, Prediction, Reject, label_event
from learners.payloads import ContextPayload, LabelPayload, PredictionPayload
from schemas.deadletters import Digest, kept
from schemas.errors import RecordError
from schemas.reading import LabelReader, Reader
from schemas.records import Prediction as PredictionRecord
from schemas.refusals import Reason
from schemas.traces import traces
from settings.building import assessment, fusion
from settings.fingerprint import ensemble_meaning
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.clock import TOLERANCE, wall
from streams.engine.api import AgentSpec, Processor, TaskContext
from streams.engine.changelogs.replica import Others
from streams.engine.outbox import Outbox
from streams.engine.state.counts import CountsTable
from streams.engine.state.entries import EntriesTable
from streams.engine.state.journal import JournalTable
from streams.engine.state.table import Table, reading
from streams.kafka.batch import Batch
from streams.kafka.topics import ENSEMBLE, Topics

_HEAD = b"ledger"
_ONLY = np.zeros(1, np.int64)
_ALL = Liveness()
_log = logging.getLogger(__name__)


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
        amend_ttl=milliseconds(ensemble.amend_ttl),
        max_amendable=ensemble.max_amendable,
    )


def ensemble_learner(settings: Settings, codec: Codec = ENTRIES) -> EnsembleLearner:
    """Return the untaught ensemble learner of the settings; `codec` for other payloads."""
    context = settings.ensemble.context
    unheard = context.partition().size if context else 0
    return EnsembleLearner(
        fusion(settings),
        join_rules(settings),
        assessment=assessment(settings),
        unheard=unheard,
        codec=codec,
    )


def spec(settings: Settings) -> AgentSpec:
    """Describe the agent to the engine."""
    topics = Topics.of(settings)
    probe = ensemble_learner(settings)
    window, cubes, scopes = probe.window, probe.unheard + 1, 2 + 2 * len(settings.learners)
    contexts = (topics.contexts,) if topics.contextual else ()

    def tables() -> list[Table]:
        return [
            JournalTable("pending", version=2),
            EntriesTable("head"),
            EntriesTable(TABLE, erasing=True),
            *(
                CountsTable(
                    _fused(name),
                    table.width,
                    cells=cubes,
                    dtype=table.dtype,
                    initial=table.initial.tolist(),
                    adds=table.dtype.kind == "i" and not table.initial.any(),
                )
                for name, table in probe.fusion.tables().items()
            ),
            CountsTable("scores", probe.scores.width, cells=scopes),
            CountsTable("regret", probe.regret.width, cells=cubes),
            # What FNR control counted in earlier versions: read, so that their state opens.
            CountsTable("fusion_fnr_control", 2),
            CountsTable("assessment", probe.assessment.table.width, cells=len(settings.labels)),
            CountsTable("totals", EnsembleTotals.width(settings), cells=1),
            CountsTable("amendments", AmendmentTotals.WIDTH, cells=1),
            CountsTable("latest", probe.latest.width, cells=1, adds=False),
            CountsTable("window", window.page_width, cells=window.pages, adds=False),
        ]

    return AgentSpec(
        ENSEMBLE,
        (topics.predictions, topics.labels, *contexts, topics.erasures),
        tables,
        lambda context: EnsembleProcessor(settings, context),
        follow=settings.topics.partitions > 1,
        leader=topics.predictions,
        meaning=ensemble_meaning(settings),
        signer=signer_of(settings, ENSEMBLE),
    )


def _fused(name: str) -> str:
    return "fusion_" + name.replace(".", "_").replace("-", "_")


class EnsembleProcessor(Processor):
    """One partition of the ensemble learner."""

    def __init__(self, settings: Settings, context: TaskContext) -> None:
        self.learner = ensemble_learner(settings)
        self._topics = Topics.of(settings)
        self._every_label = np.arange(len(settings.labels))
        self._label_index: dict[str | None, int] = {
            **{label: i for i, label in enumerate(settings.labels)},
            None: ABSTAINED,
        }
        self._log_odds = LogOddsFormat(settings)
        self._names = list(settings.learners)
        self._name_index = {name: i for i, name in enumerate(self._names)}
        self._outputs = EnsembleOutputs(settings, self.learner.fusion.experts(self._names))
        self._tables: Mapping[str, Any] = context.tables
        home = at_home(settings, context.partition)
        self._read_predictions = Reader(
            PredictionRecord,
            known={"label": settings.labels, "learner": self._names},
            checks=[*predictable(settings), home],
        )
        self._read_labels = LabelReader(settings.labels, [home])
        self._contexts = ContextReader(settings, home) if settings.ensemble.context else None
        self._erased = Erased(context.tables[TABLE])
        self._live = LiveLearners(len(self._names))
        self._batch: Batch | None = None
        self._moved = self._diagnosed = False
        self._settled = self._shrunk = 0
        self._learned: list[Ints] = []
        self._amended: list[int] = []
        self._restore()
        if context.others is not None:
            self._others: Others = context.others
            self.learner.judge = fusion(settings)
            self.learner.refresh = self._pool
            self.learner.experience = self._experience

    # State.

    def _counted(self) -> dict[str, Any]:
        learner = self.learner
        named = {_fused(name): table for name, table in learner.fusion.tables().items()}
        sure = learner.assessment.table
        return {**named, "scores": learner.scores, "regret": learner.regret, "assessment": sure}

    def _restore(self) -> None:
        with reading("the state of the ensemble"):
            for name, table in self._counted().items():
                table.put(*self._tables[name].items())
            head, pending = self._tables["head"], self._tables["pending"]
            totals = EnsembleTotals(self._tables["totals"].rows(_ONLY)[0])
            packed = head.get(_HEAD)
            if packed is not None:
                entries = ((key.decode(), value) for key, value in pending.items())
                counts = totals.counts | self._amendments().counts
                self.learner.ledger.restore({**unpack(packed), "counts": counts}, entries)
                self.learner.tally.put(_ONLY, totals.tally[None])
            numbers, pages = self._tables["window"].items()
            self.learner.window.put_pages(numbers, pages, totals.counts["settled"])

    def _amendments(self) -> AmendmentTotals:
        return AmendmentTotals(self._tables["amendments"].rows(_ONLY)[0])

    def save(self) -> None:
        """Write what changed to the tables."""
        if self._moved:
            self._save_join()
            self._moved = self._diagnosed = False
        if self._learned:
            self._save_learned()
            self._settled, self._learned, self._amended = 0, [], []

    def _save_join(self) -> None:
        learner, tables = self.learner, self._tables
        ledger = learner.ledger
        tables["pending"].put_many(
            [(name.encode(), ledger.dump(name)) for name in ledger.touched()]
        )
        head = ledger.dump_head()
        counts = head.pop("counts")
        totals = EnsembleTotals.of(counts, ledger.sizes(), learner.tally.rows(_ONLY)[0])
        amendments = AmendmentTotals.of(counts, ledger.sizes()["amendable"], ledger.amendable_bytes)
        tables["amendments"].put(_ONLY, amendments.row[None])
        tables["head"].put(_HEAD, pack(head))
        tables["totals"].put(_ONLY, totals.row[None])
        if self._diagnosed:
            tables["latest"].put(_ONLY, learner.latest.rows(_ONLY))
            tables["assessment"].put(self._every_label, learner.assessment.rows)

    def _save_learned(self) -> None:
        learner, tables = self.learner, self._tables
        pages = learner.window.changed(self._settled)
        if self._amended:
            amended = learner.window.pages_of(np.array(self._amended, np.int64))
            pages = np.union1d(pages, amended)
        tables["window"].put(pages, learner.window.read_pages(pages))
        learned = np.unique(np.concatenate(self._learned))
        known = {"scores": np.arange(2 + 2 * len(self._names)), "assessment": self._every_label}
        for name, table in self._counted().items():
            cells = known.get(name, learned)
            tables[name].put(cells, table.rows(cells))

    def _pool(self, cells: Ints) -> None:
        """Give the deciding fusion rule what all partitions learned about some cubes."""
        own, judge = self.learner.fusion.tables(), self.learner.judge
        for name, table in judge.tables().items():
            rows = [own[name].rows(cells), *self._others.parts(_fused(name), cells)]
            table.put(cells, judge.pooled(name, np.stack(rows)))

    def _experience(self) -> Experience:
        """Return what all partitions have learned."""
        own, others = self.learner.own_experience(), self._others
        amended = AmendmentTotals(others.rows("amendments", _ONLY)[0])
        return Experience(
            own.labels + int(others.rows("scores", self.learner.whole).sum()),
            own.rows + others.rows("assessment", self._every_label),
            own.corrections + amended.corrections,
        )

    # Work.

    def process(self, batch: Batch, out: Outbox) -> None:
        """Handle predictions, labels, contexts or erasures."""
        if batch.topic == self._topics.erasures:
            self._erase(batch, out)
            return
        if batch.topic == self._topics.predictions:
            events, errors = self._predicted(batch)
        elif batch.topic == self._topics.labels:
            events, errors = self._labelled(batch)
        else:
            assert self._contexts is not None  # noqa: S101 - no such topic without contexts
            events, errors = self._contexts.read(batch)
        for position, error in errors:
            out.dead(batch, position, error)
        events, overlooked = self._erased.without(events)
        self.learner.ledger.overlook(overlooked)
        self._batch = batch
        self._check_clock()
        self._take(events, 0, out, self._live.note(events))
        self._batch = None

    def _erase(self, batch: Batch, out: Outbox) -> None:
        """Erase patients, and tell every learner; note whether a label was parked."""
        digests, errors = self._erased.read(batch, range(len(batch)))
        for position, error in errors:
            out.dead(batch, position, error)
        if not digests:
            return
        ledger, at = self.learner.ledger, batch.timestamps[-1]
        names = Erased.named(digests, ledger.ids())
        for digest in digests:
            self._erased.note(digest, digest in names and ledger.holds_label(names[digest]))
        self._check_clock()
        self._take([Erase(at, name) for name in names.values()], 0, out)
        values = [erasure(digest, at) for digest in digests]
        for learner in self._names:
            keys = [PASSED_ON] * len(values)
            out.emit_many(self._topics.feedback(learner), keys, values, [at] * len(values))

    def tick(self, now: int, out: Outbox) -> None:
        """Let time pass: fusion time-outs, and labels that did not come in time."""
        self._check_clock()
        if self.learner.ledger.due(now):
            self._take([], now, out)

    def _check_clock(self) -> None:
        """Correct the join's clock if it is further ahead than machines' clocks may differ."""
        ledger, now = self.learner.ledger, wall()
        if ledger.clock > now + TOLERANCE:
            seconds = (ledger.clock - now) // 1000
            _log.warning("the join's clock was %d s ahead and has been set back", seconds)
            ledger.set_back(now)
            self._moved = True

    def _take(
        self, events: Sequence[Event | Erase], now: int, out: Outbox, present: Liveness = _ALL
    ) -> None:
        outcome = self.learner.take(events, now, live=present.live, awaited=present.awaited)
        self._note(outcome, events, out)
        self._moved = True
        shrunk, self._shrunk = self._shrunk, self.learner.ledger.shrunk
        if self._shrunk > shrunk:
            out.notes.count(SHRUNK, self._shrunk - shrunk)
        self._diagnosed |= bool(outcome.diagnoses)
        self._outputs.send_diagnoses(outcome, out)
        others = self.learner.others(outcome.settled) if self._outputs.joint else None
        self._outputs.send_feedback(outcome.settled, out, others)
        self._outputs.send_corrections(outcome.corrected, out)
        for rejection in outcome.rejections:
            self._send_dead(rejection, out)
        if outcome.settled or outcome.corrected:
            self._settled += len(outcome.settled)
            self._amended += [correction.serial for correction in outcome.corrected]
            self._learned.append(outcome.cells)

    def _note(self, outcome: Outcome, events: Sequence[Event | Erase], out: Outbox) -> None:
        """Note what will be measured once it is committed."""
        diagnoses, settled, notes = outcome.diagnoses, outcome.settled, out.notes
        if diagnoses:
            complete = sum(case.complete for case in diagnoses)
            notes.count(COMPLETE, complete)
            notes.count(INCOMPLETE, len(diagnoses) - complete)
            # The event that completed a case has its instance's time; a case that timed out was
            # opened by its first prediction, one time-out before.
            times, waited = {e.id: e.at for e in events}, self.learner.ledger.rules.fusion_timeout
            arrived = [times.get(case.id, case.at - waited) for case in diagnoses]
            notes.observe(ARRIVED, np.array(arrived, np.int64))
        if settled:
            delays = [case.at - case.diagnosed_at for case in settled]
            notes.observe(DELAYS, np.array(delays, np.int64))

    def _predicted(self, batch: Batch) -> tuple[list[Event], Sequence[Any]]:
        read = self._read_predictions.read(batch.values)
        index, labels, log_odds = self._name_index, self._label_index, self._log_odds
        events: list[Event] = []
        times = batch.timestamps
        for position, r in zip(read.positions, read.records, strict=True):
            payload = PredictionPayload(
                r.exploring,
                r.accuracy,
                None if r.log_odds is None else log_odds.expand(r.log_odds),
                r.rule,
                r.phase,
                r.cube,
                r.votes,
                r.trials,
                r.low,
                r.high,
                r.epsilon,
                r.missing,
                r.subject,
                r.history,
            )
            events.append(
                Prediction(
                    times[position], r.id, index[r.learner], labels[r.label], payload, position
                )
            )
        return self._traced(events, batch), read.errors

    @staticmethod
    def _traced(events: list[Event], batch: Batch) -> list[Event]:
        """Return predictions with the traces that their headers name; few have any."""
        if not (named := traces(batch.headers)):
            return events
        return [
            replace(event, payload=event.payload._replace(trace=named.get(event.reference)))
            if isinstance(event, Prediction)
            else event
            for event in events
        ]

    def _labelled(self, batch: Batch) -> tuple[list[Event], Sequence[Any]]:
        read = self._read_labels.read(batch.values)
        values, offsets, times = batch.values, batch.offsets, batch.timestamps
        events: list[Event] = [
            label_event(
                times[i],
                name,
                MISSING if label is None else label,
                amends,
                LabelPayload(offsets[i], kept(values[i])),
            )
            for i, name, label, amends in zip(
                read.positions, read.ids, read.labels, read.amends, strict=True
            )
        ]
        return events, read.errors

    # Outputs.

    def _send_dead(self, rejection: Reject, out: Outbox) -> None:
        """Send an event that cannot be used to the dead letters, unchanged."""
        event, reason = rejection.event, Reason[rejection.reason.name]
        error = RecordError(reason, reason.meaning)
        if isinstance(event, Prediction):
            # Only a prediction from this batch can be rejected: nothing of it has been stored yet.
            assert self._batch is not None  # noqa: S101 - time alone rejects no prediction
            out.dead(self._batch, event.reference, error)
            return
        payload: LabelPayload | ContextPayload
        if not isinstance(event, Context):
            topic, payload = self._topics.labels, LabelPayload(*event.payload)
        else:
            topic, payload = self._topics.contexts, ContextPayload(*event.payload)
        value = payload.value
        if value is not None and not isinstance(value, bytes):
            value = Digest(*value)  # only the digest of a large one was kept
        out.dead_record(error, topic, payload.offset, key=event.id.encode(), value=value)
