"""Replays in the recorded order: learners and ensemble decide after the same labels as live."""

from collections.abc import Sequence

from audit.recording.columns import firsts
from audit.recording.reader import Progress, silent
from audit.replay.player import Player
from audit.replay.recorded_order import Lesson, Made, Schedule
from audit.replay.recorded_stream import RecordedStream
from audit.replay.score import Score
from learners.join import Codec, Context, Event, JoinRules, Ledger, Prediction, label_event
from learners.payloads import ContextPayload, PredictionPayload
from settings.model import Settings

_EVER = 1 << 50
"""Longer than any stream, in milliseconds, records or bytes."""


class Follower(Player):
    """Plays a recorded stream by its schedule.

    Time stands still, but for one tick after a diagnosis that did not wait for all learners: who
    was heard in time is on record, and so is what was learned. So the join needs no other limits.
    """

    def __init__(self, stream: RecordedStream, settings: Settings, schedule: Schedule) -> None:
        super().__init__(stream, settings)
        self._schedule = schedule
        self._asked = [schedule.asked_of(name) for name in self.names]
        self._predicted: list[dict[int, tuple[int, PredictionPayload]]] = [{} for _ in self.names]
        self._now = 0
        contexts = stream.contexts
        self._context_places = None if contexts is None else firsts(contexts.ids, len(stream.names))
        rules = JoinRules(
            learners=len(self.names),
            fusion_timeout=1,
            label_ttl=_EVER,
            contextual=contexts is not None,
            max_pending=_EVER,
            max_remembered=_EVER,
            max_early=_EVER,
            amend_ttl=_EVER,
            max_amendable=_EVER,
            max_amendable_bytes=_EVER,
        )
        self.ensemble.ledger = Ledger(rules, Codec())

    def play(self, progress: Progress = silent) -> Score:
        """Play everything."""
        lessons = self._schedule.lessons
        for place in range(len(lessons) + 1):
            for i, asked in enumerate(self._asked):
                self._ask(i, asked.get(place, ()))
            self._diagnose(self._schedule.diagnoses.get(place, ()))
            if place < len(lessons):
                self._teach(lessons[place])
            progress("the recorded stream", place, len(lessons))
        return self._score()

    def _ask(self, learner: int, patients: Sequence[int]) -> None:
        places = self._places[learner][list(patients)]
        at = places[places >= 0].tolist()
        if at:
            ids = self.stream.arrivals[self.names[learner]].ids
            for place, prediction in self._decide(learner, at):
                self._predicted[learner][int(ids[place])] = prediction

    def _diagnose(self, diagnoses: Sequence[Made]) -> None:
        """Make diagnoses; one that did not wait for all learners ends its batch."""
        events: list[Event] = []
        for diagnosis in diagnoses:
            context = self._context(diagnosis)
            predictions = self._predictions(diagnosis.id, diagnosis.heard)
            events += [*context, *predictions]
            placed = bool(context) or self._context_places is None
            if len(predictions) < len(self.names) or not placed:
                self._now += 1
                self._take(events, self._now)
                events = []
        if events:
            self._take(events)

    def _context(self, diagnosis: Made) -> list[Event]:
        if self._context_places is None or not diagnosis.context:
            return []
        place = int(self._context_places[diagnosis.id])
        if place < 0:
            return []
        cube = ContextPayload(int(self._cells[place]))
        return [Context(self._now, self.stream.names[diagnosis.id], cube)]

    def _predictions(self, patient: int, heard: frozenset[str]) -> list[Event]:
        """Return the predictions for a patient of learners that were heard or are not on record."""
        name, on_record = self.stream.names[patient], self._schedule.asked
        return [
            Prediction(self._now, name, i, *predicted.pop(patient))
            for i, predicted in enumerate(self._predicted)
            if patient in predicted and (self.names[i] in heard or self.names[i] not in on_record)
        ]

    def _teach(self, lesson: Lesson) -> None:
        """Let a label come, after the predictions that were too late for the diagnosis."""
        name = self.stream.names[lesson.id]
        late = self._predictions(lesson.id, lesson.heard)
        self._take([*late, label_event(self._now, name, lesson.label, lesson.amends)])
