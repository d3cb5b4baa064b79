"""The patients of a CSV file as the learners of some settings would see them, and their labels.

Rows are treated like real patients: they are split into records as `hb produce` does, and read as
workers do, so what would be refused is refused here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.clients.patient_files import CsvPatients, gathered
from agents.clients.splitting import Splitter
from agents.local_learner import readable
from learners.arrays.types import MISSING, Bools, Floats, Ints
from learners.local.features import FeatureSpace
from schemas.rows import RowReader
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import build_space
from streams.kafka.topics import Topics


@dataclass(frozen=True)
class Cases:
    """n patients in the order of the file.

    rows     (n, d) by learner; nan where a value is missing
    truth    (n,) label indices, MISSING where there is no label
    faults   rows that could not be used
    again    (n,) later visits of a person who had come before; None if the file does not tell
    """

    spaces: Mapping[str, FeatureSpace]
    rows: Mapping[str, Floats]
    truth: Ints
    faults: int
    again: Bools | None = None

    @property
    def judged(self) -> Ints:
        """The labels that answers are scored against: for each person, that of the first visit.

        Later visits are learned from. Scored on them, a learner would be credited with recognising
        people whom it has seen.
        """
        return self.truth if self.again is None else np.where(self.again, MISSING, self.truth)

    def __len__(self) -> int:
        return len(self.truth)

    def columns(self) -> Floats:
        """Return all learners' features side by side, each category as a column of its own."""
        return np.concatenate(
            [self.spaces[name].expand(rows) for name, rows in self.rows.items()], axis=1
        )


def read_cases(source: CsvPatients, settings: Settings, limit: int | None = None) -> Cases:
    """Read the patients of a file, the first `limit` of them."""
    whole = gathered(source)
    if limit is not None:
        whole = whole.take(range(min(limit, len(whole))))
    if whole.labels is None:
        raise InputError(f"{source.name} has no labels")
    split = Splitter(settings, texts=source.texts, sealed=False).many(
        [f"p{k}" for k in range(len(whole))], whole.columns, at=0
    )
    index = {label: i for i, label in enumerate(settings.labels)}
    truth = np.array([index.get(whole.labels[row], MISSING) for row in split.rows], np.int64)
    topics, spaces, rows = Topics.of(settings), {}, {}
    for name, learner in settings.learners.items():
        spaces[name] = build_space(learner.features)
        read = RowReader(readable(spaces[name])).read(split.values[topics.instances(name)])
        rows[name] = np.array(read.rows, np.float64).reshape(-1, spaces[name].d)
    again = None if whole.subjects is None else _again([whole.subjects[row] for row in split.rows])
    return Cases(spaces, rows, truth, len(split.faults), again)


def _again(subjects: Sequence[str | None]) -> Bools:
    """Mark the visits of people who had come before.

    >>> _again(["a", "b", "a", None, None]).tolist()
    [False, False, True, False, False]
    """
    people, again = set[str](), np.zeros(len(subjects), np.bool_)
    for place, subject in enumerate(subjects):
        if subject is not None:
            again[place] = subject in people
            people.add(subject)
    return again
