"""Plays a recorded stream to untaught learners, in the order of the records' times.

Every label is recorded, so every rule of every learner can be judged on every labelled patient: the
learners learn what they would have learned, and nothing is estimated. A label counts from its own
time on; live, it took some milliseconds to arrive, and many patients may have come meanwhile.
`audit.replay.recorded_pace` does better where the record says what every decision rested on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from agents.ensemble_learner import ensemble_learner
from agents.log_odds import LogOddsFormat
from audit.recording.columns import firsts
from audit.recording.reader import Progress, silent
from audit.replay.recorded_stream import RecordedStream
from audit.replay.score import ENSEMBLE, Score
from learners.arrays.seeds import seeds_of
from learners.arrays.types import ABSTAINED, MISSING, Bools, Floats, Ints
from learners.ensemble import Outcome
from learners.fusion.late_labels import Basis
from learners.join import Codec, Context, Correct, Event, Prediction, Settle, label_event
from learners.local.learner import Labelled, Lessons, LocalLearner, opinion
from learners.payloads import ContextPayload, PredictionPayload
from learners.theory.promises import delays_table, regret_bound
from settings.building import local_learner
from settings.model import Settings

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A patient reaches a learner, a context comes (CONTEXT), or a label comes (LABEL).

    `place` is the row among the arrivals of that learner, the contexts, or the labels.
    """

    time: int
    id: int
    learner: int
    place: int


LABEL, CONTEXT = -2, -1


@dataclass(frozen=True, slots=True)
class RestsOn:
    """What each patient's diagnosis rests on, live or replayed; MISSING where nothing is known.

    learned   (n,)   labels that the ensemble had learned
    heard     (n, M) the learners that were heard in time
    taught    (n, M) labels that each learner had learned when it was asked
    basis     (n, 3) what the weights of a fusion rule that counts by time rest on (`Basis`)
    """

    learned: Ints
    heard: Bools
    taught: Ints
    basis: Ints

    @classmethod
    def of(cls, patients: int, learners: int) -> "RestsOn":
        """Return what is known before anything is."""
        nothing = np.full((patients, learners), MISSING, np.int64)
        learned = np.full(patients, MISSING, np.int64)
        basis = np.full((patients, len(Basis._fields)), MISSING, np.int64)
        return cls(learned, np.zeros((patients, learners), np.bool_), nothing, basis)

    @classmethod
    def joined(cls, parts: "Sequence[RestsOn]") -> "RestsOn":
        """Return several partitions' patients, one partition after the other."""
        return cls(
            learned=np.concatenate([part.learned for part in parts]),
            heard=np.concatenate([part.heard for part in parts]),
            taught=np.concatenate([part.taught for part in parts]),
            basis=np.concatenate([part.basis for part in parts]),
        )


class Player:
    """Plays a recorded stream to untaught learners of some settings."""

    def __init__(self, stream: RecordedStream, settings: Settings) -> None:
        self.stream, self.settings = stream, settings
        self.names = list(settings.learners)
        self.learners: list[LocalLearner] = [local_learner(settings, name) for name in self.names]
        self.ensemble = ensemble_learner(settings, Codec())
        self.diagnosed: Ints = np.full(len(stream.names), MISSING, np.int64)
        self.rests_on = RestsOn.of(len(stream.names), len(self.names))
        self._number = {name: i for i, name in enumerate(stream.names)}
        self._cells = self._contexts()
        self._log_odds = LogOddsFormat(settings)
        # Where each patient stands among a learner's arrivals; each arrives there once.
        self._places = [firsts(stream.arrivals[name].ids, len(stream.names)) for name in self.names]

    def _contexts(self) -> Ints:
        context, rows = self.settings.ensemble.context, self.stream.contexts
        if context is None or rows is None:
            return np.zeros(0, np.int64)
        return context.partition().context_cells(rows.rows)

    def play(self, progress: Progress = silent) -> Score:
        """Play everything."""
        count, total = 0, sum(map(len, (self.stream.label_ids, *self._ids())))
        for labels, run in groupby(self._arrivals(), key=lambda arrival: arrival.learner == LABEL):
            for piece in _pieces(run):
                self._take(self._labels(piece) if labels else self._decide_all(piece))
                count += len(piece)
                progress("the recorded stream", count, total)
        return self._score()

    def _ids(self) -> list[Ints]:
        contexts = () if self.stream.contexts is None else (self.stream.contexts,)
        return [part.ids for part in (*self.stream.arrivals.values(), *contexts)]

    def _arrivals(self) -> Iterator[_Arrival]:
        """Return all arrivals in the order of time; at the same time, labels come last."""
        stream = self.stream
        parts = [
            (i, stream.arrivals[name].ids, stream.arrivals[name].times)
            for i, name in enumerate(self.names)
        ]
        if stream.contexts is not None:
            parts.insert(0, (CONTEXT, stream.contexts.ids, stream.contexts.times))
        parts.append((LABEL, stream.label_ids, stream.label_times))
        kinds = np.concatenate([np.full(len(ids), kind) for kind, ids, _ in parts])
        ids = np.concatenate([ids for _, ids, _ in parts])
        times = np.concatenate([times for _, _, times in parts])
        places = np.concatenate([np.arange(len(ids)) for _, ids, _ in parts])
        for k in np.lexsort((np.arange(len(ids)), kinds == LABEL, times)).tolist():
            yield _Arrival(int(times[k]), int(ids[k]), int(kinds[k]), int(places[k]))

    def _labels(self, piece: Sequence[_Arrival]) -> list[Event]:
        names, labels, amends = self.stream.names, self.stream.labels, self.stream.amends
        return [
            label_event(
                a.time,
                names[a.id],
                int(labels[a.place]),
                amends is not None and bool(amends[a.place]),
            )
            for a in piece
        ]

    def _decide_all(self, piece: Sequence[_Arrival]) -> list[Event]:
        """Let patients come: each learner decides the whole piece at once, and then learns."""
        predictions: dict[tuple[int, int], tuple[int, PredictionPayload]] = {}
        for i in range(len(self.learners)):
            at = [a.place for a in piece if a.learner == i]
            if at:
                predictions.update(
                    ((i, place), prediction) for place, prediction in self._decide(i, at)
                )
        return [self._event(arrival, predictions) for arrival in piece]

    def _event(self, a: _Arrival, predictions: dict[tuple[int, int], Any]) -> Event:
        if a.learner == CONTEXT:
            return Context(
                a.time, self.stream.names[a.id], ContextPayload(int(self._cells[a.place]))
            )
        label, payload = predictions[a.learner, a.place]
        return Prediction(a.time, self.stream.names[a.id], a.learner, label, payload)

    def _decide(self, learner: int, at: list[int]) -> Iterator[tuple[int, tuple[int, Any]]]:
        arrivals = self.stream.arrivals[self.names[learner]]
        rows = arrivals.rows[at]
        names = [self.stream.names[number] for number in arrivals.ids[at].tolist()]
        past = self.stream.history[arrivals.ids[at]].tolist()
        self.rests_on.taught[arrivals.ids[at], learner] = self.learners[learner].iup.labelled
        predictions = self.learners[learner].decide(rows, seeds_of(names))
        chosen = predictions.choices
        # As they would have travelled.
        odds = self._log_odds.hear(self._log_odds.send(predictions.log_odds))
        columns = zip(
            at, predictions.labels.tolist(), chosen.exploring.tolist(), chosen.accuracy.tolist(),
            odds.tolist(), chosen.cubes.tolist(), chosen.rules.tolist(),
            predictions.votes.tolist(), past,
            strict=True,
        )  # fmt: skip
        for place, label, exploring, accuracy, odd, cube, rule, votes, history in columns:
            sure = None if np.isnan(accuracy) else accuracy
            log_odds = None if np.isnan(odd[0]) else odd
            payload = PredictionPayload(
                exploring, sure, log_odds, rule, chosen.phase, cube, votes, history=history
            )
            yield place, (ABSTAINED if label == MISSING else label, payload)

    def _take(self, events: list[Event], now: int = 0) -> None:
        """Let the ensemble learner act, and the local learners learn what is settled."""
        outcome = self.ensemble.take(events, now)
        self.record(outcome)
        joint = any(learner.joint for learner in self.learners)
        log_odds = self.ensemble.others(outcome.settled) if joint else None
        for i, learner in enumerate(self.learners):
            at = [k for k, case in enumerate(outcome.settled) if case.payloads[i] is not None]
            if at:
                heard = None if log_odds is None else log_odds[at, i]
                self._learn(i, learner, [outcome.settled[k] for k in at], heard)
        self._correct(outcome.corrected)

    def _correct(self, corrected: Sequence[Correct]) -> None:
        """Let the local learners recount; their rules are taught nothing, as live."""
        for i, learner in enumerate(self.learners):
            corrections = [
                correction for correction in corrected if correction.case.payloads[i] is not None
            ]
            back = [replace(correction.case, label=correction.was) for correction in corrections]
            relabelled = [correction.case for correction in corrections]
            learner.correct(_labelled(_with_label(back), i), _labelled(_with_label(relabelled), i))

    def record(self, outcome: Outcome) -> None:
        """Note the diagnoses; a subclass may note more."""
        numbers = [self.number(case.id) for case in outcome.diagnoses]
        self.diagnosed[numbers] = outcome.fused.labels
        self.rests_on.learned[numbers] = outcome.assessed.learned
        for number, case in zip(numbers, outcome.diagnoses, strict=True):
            self.rests_on.heard[number] = [label != MISSING for label in case.labels]
        if outcome.fused.basis is not None:
            self.rests_on.basis[numbers] = outcome.fused.basis

    def number(self, name: str) -> int:
        """Return the number of a patient in the stream."""
        return self._number[name]

    def _learn(
        self, i: int, learner: LocalLearner, heard: Sequence[Settle], log_odds: Floats | None
    ) -> None:
        payloads: list[PredictionPayload] = [case.payloads[i] for case in heard]
        places = self._places[i][[self._number[case.id] for case in heard]]
        labelled = _labelled(heard, i)
        truth = labelled.truth
        rows = self.stream.arrivals[self.names[i]].rows[places]
        unsaid = (np.nan,) * len(self.settings.labels)
        sent = np.array([payload.log_odds or unsaid for payload in payloads], np.float64)
        own = opinion(sent, np.array([case.labels[i] for case in heard], np.int64))
        learner.learn(labelled, Lessons(rows, truth, log_odds, own, labelled.rules))

    def _score(self) -> Score:
        K = len(self.settings.labels)
        scopes = self.ensemble.scores.rows(np.arange(1 + len(self.names)))
        matrices = scopes.reshape(-1, K, K)
        cells, rows = self.ensemble.regret.items()
        named = dict(zip([ENSEMBLE, *self.names], matrices, strict=True))
        return Score(named, rows, self._bound(cells, rows[:, 0]))

    def _bound(self, cells: Ints, labelled: Ints) -> float | None:
        fusion = self.ensemble.fusion
        name = delays_table(fusion)
        if name is None:
            return None
        counts = self.ensemble.ledger.counts
        corrected = any(counts[n] for n in ("amendment_taken", "withdrawal_taken", "label_again"))
        delays = fusion.tables()[name].rows(cells)
        return regret_bound(fusion, labelled, delays, corrected=corrected)


def _with_label(cases: Sequence[Settle]) -> list[Settle]:
    return [case for case in cases if case.label != MISSING]


def _labelled(cases: Sequence[Settle], learner: int) -> Labelled:
    """Return the labels of instances with what a learner had decided on them."""
    payloads: list[PredictionPayload] = [case.payloads[learner] for case in cases]
    return Labelled(
        phase=np.array([payload.phase for payload in payloads], np.int64),
        cubes=np.array([payload.cube for payload in payloads], np.int64),
        rules=np.array([payload.rule for payload in payloads], np.int64),
        votes=np.array([payload.votes for payload in payloads], np.int64),
        truth=np.array([case.label for case in cases], np.int64),
    )


def _pieces(run: Iterator[_Arrival]) -> Iterator[list[_Arrival]]:
    arrivals = list(run)
    for start in range(0, len(arrivals), _CHUNK):
        yield arrivals[start : start + _CHUNK]
