"""The topics of one partition as columns. Ids, labels, learners and rules are numbers here.

What an agent would refuse is not in the columns; its offset is in `bad`. The same readers decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, ulp
from typing import Any

import numpy as np

from agents.erasures import PASSED_ON
from agents.local_learner import readable
from agents.log_odds import LogOddsFormat
from agents.record_checks import at_home, predictable
from agents.sealing import context_opener, instance_opener
from audit.recording.batch_slices import since, upto
from audit.recording.columns import Columns, Ids
from learners.arrays.shares import UNIT
from learners.arrays.types import ABSTAINED, MISSING, Ints
from learners.assessment.bins import millionths
from learners.fusion.base import UNKNOWN
from learners.fusion.late_labels import Basis
from learners.local.features import FeatureSpace
from learners.local.partition import Partition
from schemas.deadletters import from_message
from schemas.errors import RecordError
from schemas.reading import BatchReader, Check, LabelReader, Reader
from schemas.records import (
    REFER,
    Diagnosis,
    Feedback,
    Opinion,
    Prediction,
    Reasons,
    TrackRecord,
)
from schemas.rows import RowReader
from schemas.sealed import Opener
from settings.model import Settings
from settings.sections.features import build_space
from streams.clock import wall
from streams.engine.tasks.record_times import RecordTimes
from streams.kafka.batch import Batch

NONE = -1
"""A rule that the settings do not know, votes that were not sent, a context that is not named."""


@dataclass(slots=True)
class Names:
    """The names behind the numbers: fixed by the settings, except for ids and votes, which grow."""

    settings: Settings
    partition: int = 0
    ids: Ids = field(default_factory=Ids)
    votes: list[tuple[int, ...]] = field(default_factory=list)
    _vote_codes: dict[tuple[int, ...], int] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, int]:
        """The labels' numbers."""
        return {label: i for i, label in enumerate(self.settings.labels)}

    @property
    def learners(self) -> dict[str, int]:
        """The local learners' numbers."""
        return {name: i for i, name in enumerate(self.settings.learners)}

    def rules(self, learner: str) -> dict[str, int]:
        """Return the numbers of a learner's rules."""
        return {rule: f for f, rule in enumerate(self.settings.learners[learner].rules)}

    @property
    def home(self) -> Check:
        """The check that a record belongs to this partition."""
        return at_home(self.settings, self.partition)

    def vote_code(self, votes: tuple[int, ...]) -> int:
        """Return one number for the votes of all rules of a learner."""
        code = self._vote_codes.setdefault(votes, len(self.votes))
        if code == len(self.votes):
            self.votes.append(votes)
        return code


class Log:
    """One topic of one partition: good records as columns, offsets of the others.

    Earlier versions used some records that agents refuse by now, for example on a wrong partition.
    So a record that only the agents' own checks (`strict`) find bad is bad if it was `refused`.
    """

    def __init__(self, columns: Columns, strict: BatchReader[Any] | None = None) -> None:
        self.columns = columns
        self.bad: list[int] = []
        self.first_time: int | None = None
        self.refused: Mapping[int, Sequence[str]] = {}
        self._times = RecordTimes()
        self._strict = strict

    def take(self, batch: Batch) -> None:
        """Take in a batch; its records count with the times that tasks would take them at."""
        batch = self._times.corrected(batch, wall())
        if self.first_time is None and len(batch):
            self.first_time = batch.timestamps[0]
        if not self.refused.keys().isdisjoint(batch.offsets):
            batch = self._without_refused(batch)
        self._take_or_split(batch)

    def _take_or_split(self, batch: Batch) -> None:
        """Take a batch in; if it cannot be, find the records that no column can hold."""
        try:
            errors = self._take(batch)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            if len(batch) == 1:
                self.bad += batch.offsets
                return
            half = batch.offsets[len(batch) // 2]
            self._take_or_split(upto(batch, half))
            self._take_or_split(since(batch, half))
            return
        self.bad += [batch.offsets[position] for position, _ in errors]

    def _without_refused(self, batch: Batch) -> Batch:
        """Return a batch in which records that were rightly refused are empty."""
        values = [
            None if offset in self.refused and self._rightly(value, self.refused[offset]) else value
            for offset, value in zip(batch.offsets, batch.values, strict=True)
        ]
        return replace(batch, values=values)

    def _rightly(self, value: bytes | None, reasons: Sequence[str]) -> bool:
        fault = None if self._strict is None else self._strict.fault(value)
        return fault is not None and fault.reason.value in reasons

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.columns)


def _at(values: Sequence[int], positions: Sequence[int]) -> list[int]:
    return [values[position] for position in positions]


class RowLog(Log):
    """Rows of features: `id`, `offset`, `time`, `history`, and the features as `row`."""

    def __init__(self, names: Names, space: FeatureSpace, opener: Opener | None) -> None:
        rows = (np.float64, space.d)
        columns = Columns(id=np.int64, offset=np.int64, time=np.int64, row=rows, history=np.bool_)
        super().__init__(columns, RowReader(readable(space), [names.home], opener))
        self._ids = names.ids
        self._reader = RowReader(readable(space), opener=opener)

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        if read.ids:
            self.columns.add(
                id=self._ids.of(read.ids),
                offset=_at(batch.offsets, read.positions),
                time=_at(batch.timestamps, read.positions),
                row=read.rows,
                history=read.history,
            )
        return read.errors


class InstanceLog(RowLog):
    """Instances of one learner."""

    def __init__(self, names: Names, learner: str) -> None:
        space = build_space(names.settings.learners[learner].features)
        super().__init__(names, space, instance_opener(names.settings, learner))


class ContextLog(RowLog):
    """Contexts: as instances; `cells` are their cubes."""

    def __init__(self, names: Names, partition: Partition) -> None:
        super().__init__(names, partition.space, context_opener(names.settings))
        self._partition = partition

    def cells(self) -> Ints:
        """Return the cube of each context."""
        return self._partition.context_cells(self.columns["row"])


class LabelLog(Log):
    """Labels: `id`, `offset`, `time`, `label` (MISSING where it is withdrawn), `amends`."""

    def __init__(self, names: Names) -> None:
        columns = Columns(
            id=np.int64, offset=np.int64, time=np.int64, label=np.int16, amends=np.bool_
        )
        super().__init__(columns, LabelReader(names.settings.labels, [names.home]))
        self._ids = names.ids
        self._reader = LabelReader(names.settings.labels)

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        self.columns.add(
            id=self._ids.of(read.ids),
            offset=_at(batch.offsets, read.positions),
            time=_at(batch.timestamps, read.positions),
            label=[MISSING if label is None else label for label in read.labels],
            amends=[
                amends or label is None
                for amends, label in zip(read.amends, read.labels, strict=True)
            ],
        )
        return read.errors


class PredictionLog(Log):
    """Predictions of all learners, with everything the ensemble learner uses and hands back."""

    def __init__(self, names: Names) -> None:
        odds = (np.float64, len(names.settings.labels))
        allowed = {"label": names.settings.labels, "learner": list(names.settings.learners)}
        checks = [*predictable(names.settings), names.home]
        super().__init__(
            Columns(
                id=np.int64, offset=np.int64, time=np.int64, learner=np.int16, label=np.int16,
                phase=np.int64, cube=np.int64, rule=np.int16, exploring=np.bool_, trials=np.int64,
                accuracy=np.float64, odds=odds, votes=np.int32, history=np.bool_, learned=np.int64,
            ),
            Reader(Prediction, known=allowed, checks=checks),
        )  # fmt: skip
        self._names = names
        self._reader = Reader(Prediction, known=allowed)
        self._rules = {name: names.rules(name) for name in names.settings.learners}
        self._log_odds = LogOddsFormat(names.settings)

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        records, names = read.records, self._names
        learners, labels = names.learners, names.labels
        self.columns.add(
            id=names.ids.of(r.id for r in records),
            offset=_at(batch.offsets, read.positions),
            time=_at(batch.timestamps, read.positions),
            learner=[learners[r.learner] for r in records],
            label=[ABSTAINED if r.label is None else labels[r.label] for r in records],
            phase=[r.phase for r in records],
            cube=[int(r.cube) for r in records],
            rule=[self._rules[r.learner].get(r.rule, NONE) for r in records],
            exploring=[r.exploring for r in records],
            trials=[r.trials for r in records],
            accuracy=[np.nan if r.accuracy is None else r.accuracy for r in records],
            odds=self._log_odds.hear([r.log_odds for r in records]),
            votes=[votes_code(names, r.learner, r.votes) for r in records],
            history=[r.history for r in records],
            learned=[NONE if r.learned is None else r.learned for r in records],
        )
        return read.errors


def votes_code(names: Names, learner: str, votes: dict[str, str] | None) -> int:
    """Return the number of the votes of a learner's rules, NONE if they were not sent."""
    if votes is None:
        return NONE
    labels = names.labels
    return names.vote_code(
        tuple(labels.get(votes.get(rule, ""), MISSING) for rule in names.rules(learner))
    )


class DiagnosisLog(Log):
    """Diagnoses: the label each learner `predicted` in time, each expert's share in whole `parts`.

    `cube` is that of the context, `votes` are those of experts other than the learners, `basis` is
    what the weights rested on; NONE, MISSING and UNKNOWN where the record has none. `support` is in
    millionths, `possible` as bits, `record` the track record. `of_mode`: made by the fusion rule
    that the settings name.
    """

    def __init__(self, names: Names, experts: Sequence[str]) -> None:
        predicted, parts = (np.int16, len(names.settings.learners)), (np.int64, len(experts))
        K = len(names.settings.labels)
        super().__init__(
            Columns(
                id=np.int64, offset=np.int64, at=np.int64, label=np.int16, complete=np.bool_,
                predicted=predicted, parts=parts, cube=np.int64, votes=(np.int16, len(experts)),
                basis=(np.int64, len(Basis._fields)),
                support=(np.int64, K), chance=(np.float64, K), possible=np.int64,
                answer=np.int16, learned=np.int64, record=(np.float64, 4), history=np.bool_,
                of_mode=np.bool_,
            )
        )  # fmt: skip
        self._names, self._experts = names, experts
        self._reader = Reader(Diagnosis, known={"label": names.settings.labels})

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        records, names = read.records, self._names
        labels, learners = names.labels, list(names.learners)
        shares = [[r.weights.get(expert, 0.0) for expert in self._experts] for r in records]
        self.columns.add(
            id=names.ids.of(r.id for r in records),
            offset=_at(batch.offsets, read.positions),
            at=[r.at for r in records],
            label=[labels[r.label] for r in records],
            complete=[r.complete for r in records],
            predicted=[[_predicted(r.learners.get(n), labels) for n in learners] for r in records],
            parts=np.rint(np.array(shares, np.float64) * UNIT),
            cube=[_number(r.context) for r in records],
            votes=[
                [labels.get((r.votes or {}).get(expert, ""), MISSING) for expert in self._experts]
                for r in records
            ],
            basis=[_basis(r.basis) for r in records],
            history=[r.history for r in records],
            of_mode=[r.mode == names.settings.ensemble.mode for r in records],
            **self._sure(records, labels),
        )  # fmt: skip
        return read.errors

    @staticmethod
    def _sure(records: Sequence[Diagnosis], labels: Mapping[str, int]) -> dict[str, Any]:
        """Return how sure diagnoses say that they are; support is negative where they do not."""
        K = len(labels)
        unsure, unknown = (-1.0,) * K, (np.nan,) * K
        shares = [r.support if r.support and len(r.support) == K else unsure for r in records]
        return {
            "support": millionths(np.array(shares).reshape(-1, K)),
            "chance": [
                unknown if r.chance is None else [r.chance.get(k, np.nan) for k in labels]
                for r in records
            ],
            "answer": [labels.get(r.answer or "", NONE) for r in records],
            "possible": [_possible(r, labels) for r in records],
            "learned": [NONE if r.learned is None else r.learned for r in records],
            "record": [_track(r.track_record) for r in records],
        }


def _track(record: TrackRecord | None) -> tuple[float, ...]:
    if record is None:
        return (np.nan,) * 4
    return record.cases, record.right, record.low, record.high


def _possible(record: Diagnosis, labels: Mapping[str, int]) -> int:
    """Return the labels that a diagnosis leaves possible, as bits."""
    left = record.cannot_exclude if record.answer == REFER else (record.answer or "",)
    return sum(1 << labels[label] for label in set(left) if label in labels)


def _predicted(opinion: Opinion | None, labels: Mapping[str, int]) -> int:
    """Return the label that a learner contributed to a diagnosis, as the join has it."""
    if opinion is None:
        return MISSING
    return ABSTAINED if opinion.label is None else labels.get(opinion.label, MISSING)


def _basis(numbers: Sequence[int] | None) -> Sequence[int]:
    width = len(Basis._fields)
    return numbers if numbers is not None and len(numbers) == width else (UNKNOWN,) * width


def _number(cube: str | None) -> int:
    return int(cube) if cube is not None and cube.isdecimal() else NONE


_LEARNERS_OWN = {"out_of_range", "wrong_dimension"}


class FeedbackLog(Log):
    """Feedback to one learner; `others` and `odds` are nan where it was told nothing of them.

    `amends` marks corrections; `was` is the label that counted before, `label` the one that counts
    from then on, MISSING where there is none.
    """

    def __init__(self, names: Names, learner: str) -> None:
        labels, self._rules = names.settings.labels, names.rules(learner)
        allowed = {"label": labels, "predicted": labels, "was": labels, "rule": list(self._rules)}
        super().__init__(
            Columns(
                id=np.int64, offset=np.int64, at=np.int64, label=np.int16, predicted=np.int16,
                phase=np.int64, cube=np.int64, rule=np.int16, votes=np.int32,
                others=(np.float64, len(labels)), odds=(np.float64, len(labels)),
                amends=np.bool_, was=np.int16,
            ),
            Reader(Feedback, known=allowed, checks=[names.home]),
        )  # fmt: skip
        self._names, self._learner = names, learner
        self._log_odds = LogOddsFormat(names.settings)
        self._reader = Reader(Feedback, known=allowed)

    def _rightly(self, value: bytes | None, reasons: Sequence[str]) -> bool:
        # Only the learner knew which phases and cubes there are.
        return not _LEARNERS_OWN.isdisjoint(reasons) or super()._rightly(value, reasons)

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        records, names = read.records, self._names
        labels = names.labels
        self.columns.add(
            id=names.ids.of(r.id for r in records),
            offset=_at(batch.offsets, read.positions),
            at=[r.at for r in records],
            label=[labels.get(r.label or "", MISSING) for r in records],
            amends=[r.amends for r in records],
            was=[labels.get(r.was or "", MISSING) for r in records],
            predicted=[
                ABSTAINED if r.predicted is None else labels.get(r.predicted, MISSING)
                for r in records
            ],
            phase=[r.phase for r in records],
            cube=[int(r.cube) for r in records],
            rule=[self._rules[r.rule] for r in records],
            votes=[votes_code(names, self._learner, r.votes) for r in records],
            others=self._log_odds.hear([r.others for r in records]),
            odds=self._log_odds.hear([r.log_odds for r in records]),
        )
        return [error for error in read.errors if batch.keys[error[0]] != PASSED_ON]


class ReasonLog(Log):
    """A learner's reasons: `odds` as sent, and whether parts and rest sum to them (`sound`)."""

    def __init__(self, names: Names, learner: str) -> None:
        self._rules = names.rules(learner)
        self._reader = Reader(Reasons, known={"rule": list(self._rules)})
        super().__init__(
            Columns(
                id=np.int64, offset=np.int64, rule=np.int16, sound=np.bool_,
                odds=(np.float64, len(names.settings.labels)),
            )
        )  # fmt: skip
        self._ids = names.ids
        self._features = {feature.name for feature in names.settings.learners[learner].features}
        self._log_odds = LogOddsFormat(names.settings)

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        read = self._reader.read(batch.values)
        records = read.records
        self.columns.add(
            id=self._ids.of(r.id for r in records),
            offset=_at(batch.offsets, read.positions),
            rule=[self._rules[r.rule] for r in records],
            sound=[r.parts.keys() == self._features and _adds_up(r) for r in records],
            odds=self._log_odds.hear([r.log_odds for r in records]),
        )
        return read.errors


def _adds_up(reasons: Reasons) -> bool:
    """Whether parts and rest sum to the log-odds: to the last bit, but for the rest's rounding."""
    terms = [*reasons.parts.values(), reasons.rest]
    if {len(term) for term in terms} != {len(reasons.log_odds)}:
        return False
    return all(
        abs(fsum(part[k] for part in terms) - odds) <= ulp(max(abs(odds), abs(reasons.rest[k])))
        for k, odds in enumerate(reasons.log_odds)
    )


class DeadLog(Log):
    """Dead letters: the reasons why records were refused, by topic and offset."""

    def __init__(self, reasons: dict[str, dict[int, list[str]]]) -> None:
        super().__init__(Columns(offset=np.int64))
        self.reasons = reasons

    def _take(self, batch: Batch) -> Sequence[tuple[int, RecordError]]:
        errors = []
        for i, offset in enumerate(batch.offsets):
            try:
                letter = from_message(batch.headers.get(i, ()), None, None)
            except RecordError as error:
                errors.append((i, error))
                continue
            self.columns.add(offset=[offset])
            of_topic = self.reasons.setdefault(letter.topic, {})
            of_topic.setdefault(letter.offset, []).append(letter.reason)
        return errors
