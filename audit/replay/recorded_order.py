"""The order in which a partition decided and learned, reconstructed from its records.

Labels are learned in the order of the feedback. A prediction says how many labels its learner had
learned when it was made, a diagnosis how many the ensemble had. So each decision has its place
among the labels, and a replay can follow the record instead of guessing from times: how long
anything took, and what came in one batch, no longer matters.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from typing import TypeVar

import numpy as np

from audit.recording.columns import first_of_each
from audit.recording.partition_logs import PartitionLogs
from audit.recording.topic_logs import NONE, FeedbackLog
from audit.settling_order import merged_order
from learners.arrays.types import MISSING, Ints

_Thing = TypeVar("_Thing")


class Unknown(StrEnum):
    """Why the order in which things happened is not on record."""

    PARTITIONS = "several partitions learned, and when each heard of the others is not on record"
    REMOVED = "retention has removed the start of some topics"
    EARLIER = "some predictions are from a version that did not say how much it had learned"
    CONTRADICTION = "predictions, diagnoses and feedback do not tell one order"


@dataclass(frozen=True, slots=True)
class Made:
    """A diagnosis as it was made: which learners were heard in time, and whether the context."""

    id: int
    heard: frozenset[str]
    context: bool


@dataclass(frozen=True, slots=True)
class Lesson:
    """A label as it was learned, or corrected if it `amends`; `heard` are those it went to."""

    id: int
    label: int
    amends: bool
    heard: frozenset[str]


@dataclass(frozen=True, slots=True)
class Schedule:
    """What happened, by how many lessons had been learned before it.

    asked       by learner: patients in order, after each number of lessons
    diagnoses   in order, after each number of lessons
    lessons     in order
    """

    asked: Mapping[str, Mapping[int, Sequence[int]]]
    diagnoses: Mapping[int, Sequence[Made]]
    lessons: Sequence[Lesson]

    def asked_of(self, learner: str) -> Mapping[int, Sequence[int]]:
        """Return when a learner was asked; one not on record counts as asked at the diagnosis."""
        requests = self.asked.get(learner)
        if requests is not None:
            return requests
        return {
            after: [diagnosis.id for diagnosis in diagnoses]
            for after, diagnoses in self.diagnoses.items()
        }


def schedule(recorded: Sequence[PartitionLogs]) -> Schedule | Unknown:
    """Return the order of everything, or why it is not known."""
    if len(recorded) > 1:
        return Unknown.PARTITIONS
    logs = recorded[0]
    if logs.vouched_from is not None:
        return Unknown.REMOVED
    if any((log.columns["learned"] == NONE).any() for log in (logs.predictions, logs.diagnoses)):
        return Unknown.EARLIER
    lessons = _Lessons.of(logs)
    try:
        return Schedule(_asked(logs, lessons), _diagnoses(logs, lessons), lessons.in_order())
    except _ContradictionError:
        return Unknown.CONTRADICTION


class _ContradictionError(Exception):
    """Records do not tell one order."""


def _asked(logs: PartitionLogs, lessons: "_Lessons") -> dict[str, dict[int, list[int]]]:
    columns, asked = logs.predictions.columns, {}
    for i, name in enumerate(logs.settings.learners):
        own = np.flatnonzero(columns["learner"] == i)
        first = own[first_of_each(columns["id"][own])]
        places = _places(columns["learned"][first], lessons.steps(name))
        asked[name] = _by_place(places, columns["id"][first].tolist())
    return asked


def _diagnoses(logs: PartitionLogs, lessons: "_Lessons") -> dict[int, list[Made]]:
    columns, names = logs.diagnoses.columns, list(logs.settings.learners)
    first = np.flatnonzero(first_of_each(columns["id"]))
    heard = columns["predicted"][first] != MISSING
    diagnoses = [
        Made(number, frozenset(compress(names, spoke)), cube != NONE)
        for number, spoke, cube in zip(
            columns["id"][first].tolist(),
            heard.tolist(),
            columns["cube"][first].tolist(),
            strict=True,
        )
    ]
    return _by_place(_places(columns["learned"][first], lessons.steps()), diagnoses)


class _Lessons:
    """Lessons by their number; a learner's feedback is a sequence of these."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int], int] = {}
        self.times: list[int] = []
        self.cases: list[tuple[int, int, bool]] = []
        self.changes: list[int] = []
        self.heard: list[set[str]] = []
        self.order: list[int] = []
        self.certain = True

    @classmethod
    def of(cls, logs: PartitionLogs) -> "_Lessons":
        """Gather the feedback of all learners and put it in order."""
        lessons = cls()
        sequences = [lessons._sequence(name, log) for name, log in logs.feedback.items()]
        lessons.order, lessons.certain = merged_order(sequences, lessons.times)
        return lessons

    def _sequence(self, learner: str, log: FeedbackLog) -> list[int]:
        """Number a learner's feedback; the k-th on a patient is the same for all learners."""
        columns = [log.columns[c].tolist() for c in ("id", "label", "amends", "was", "at")]
        counts, sequence = Counter[int](), []
        for patient, label, amends, was, at in zip(*columns, strict=True):
            number = self.numbers.setdefault((patient, counts[patient]), len(self.numbers))
            counts[patient] += 1
            if number == len(self.cases):
                self.times.append(at)
                self.cases.append((patient, label, amends))
                self.changes.append((label != MISSING) - (amends and was != MISSING))
                self.heard.append(set())
            self.heard[number].add(learner)
            sequence.append(number)
        return sequence

    def steps(self, learner: str | None = None) -> list[int]:
        """Return by how much each lesson changed how many labels a learner, or all, had learned."""
        heard, changes = self.heard, self.changes
        return [changes[k] if learner is None or learner in heard[k] else 0 for k in self.order]

    def in_order(self) -> list[Lesson]:
        """Return the lessons."""
        if not self.certain:
            raise _ContradictionError
        return [Lesson(*self.cases[k], frozenset(self.heard[k])) for k in self.order]


def _places(learned: Ints, steps: Sequence[int]) -> list[int]:
    """Return after how many lessons each decision was made, from the labels known to it.

    Decisions are in order, so none comes before the one before it.

    >>> _places(np.array([0, 0, 1, 2, 1]), [1, 0, 1, -1])
    [0, 0, 1, 3, 4]
    """
    count = place = 0
    places = []
    for number in learned.tolist():
        while count != number and place < len(steps):
            count += steps[place]
            place += 1
        if count != number:
            raise _ContradictionError
        places.append(place)
    return places


def _by_place(places: Sequence[int], items: Sequence[_Thing]) -> dict[int, list[_Thing]]:
    grouped: dict[int, list[_Thing]] = {}
    for place, item in zip(places, items, strict=True):
        grouped.setdefault(place, []).append(item)
    return grouped
