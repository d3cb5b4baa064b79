"""Turns patients into records: each learner gets its own features, and nothing else.

Works on columns, so that a file of many patients costs little more than its bytes. Features travel
by name: a producer whose settings differ from the workers' then causes dead letters, not diagnoses
that are silently wrong. A value that is not known travels as null.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agents.sealing import KeyRing, context_ring, learner_rings
from schemas.kinds import MAX_TEXT, has_control_characters, is_missing
from schemas.records import Context, Instance, Label
from schemas.writing import encode_all
from settings.client_settings import AnySettings, ClientFeature
from settings.errors import InputError
from streams.kafka.topics import Topics

if TYPE_CHECKING:
    from settings.sections.features import FeatureSettings

_NUMBERS = {int, float}
_REQUIRED = "a value: it is required"
ID, SUBJECT = "", " "
"""The columns of faults in the id and in the subject; no feature has such a name."""
_TOKENS = {ID: "id", SUBJECT: "subject"}
_TOKEN = f"1 to {MAX_TEXT} characters, none of them a control one"


class _Kind(NamedTuple):
    """How a column is read: the feature's name, its categories (none for a number), required."""

    name: str
    categories: frozenset[str]
    required: bool


class PatientError(InputError):
    """A patient cannot be published; the message names what is wrong, never a value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one patient: its first invalid feature."""

    row: int
    column: str
    expected: str

    def __str__(self) -> str:
        name = _TOKENS.get(self.column, f"feature {self.column!r}")
        return f"{name}: expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Split:
    """The valid patients: their rows and ids, the values for each topic; and the faults."""

    rows: Sequence[int]
    ids: Sequence[str]
    values: Mapping[str, list[bytes]]
    faults: Sequence[Fault]


@dataclass(frozen=True, slots=True)
class _Part:
    topic: str
    record: type[Instance] | type[Context]
    features: "Sequence[FeatureSettings | ClientFeature]"
    ring: KeyRing | None


class Splitter:
    """Splits patients as the settings say; contexts too, where there are any.

    texts    values come as text, as in a CSV file: numbers are read, blanks around them skipped
    sealed   features are encrypted where the settings name keys; not for what stays in this process
    history the patients are past ones
    """

    def __init__(
        self,
        settings: AnySettings,
        *,
        texts: bool = False,
        sealed: bool = True,
        history: bool = False,
    ) -> None:
        topics = Topics.of(settings)
        self._parts = []
        for name, learner in settings.learners.items():
            rings = learner_rings(settings, name) if sealed else None
            ring = None if rings is None else rings.wire
            self._parts.append(_Part(topics.instances(name), Instance, learner.features, ring))
        if settings.ensemble.context is not None:
            ring = context_ring(settings) if sealed else None
            features = settings.ensemble.context.features
            self._parts.append(_Part(topics.contexts, Context, features, ring))
        self._texts, self._history = texts, history
        # Two learners may use one feature, and the same number serves both.
        self._kinds = list(dict.fromkeys(_kind(f) for part in self._parts for f in part.features))

    @property
    def topics(self) -> list[str]:
        """Return the topics that a patient goes to."""
        return [part.topic for part in self._parts]

    @property
    def columns(self) -> list[str]:
        """Return the names of all features, each once."""
        return list(dict.fromkeys(f.name for part in self._parts for f in part.features))

    def one(
        self, name: str, features: Mapping[str, object], at: int, subject: str | None = None
    ) -> dict[str, bytes]:
        """Return the value for each topic of one patient, or raise PatientError.

        Features that no learner uses are not sent; those that are not given are missing.
        """
        self.need_a_feature(features)
        columns = {column: [features.get(column)] for column in self.columns}
        split = self.many([name], columns, at, [subject])
        for fault in split.faults:
            raise PatientError(str(fault))
        return {topic: values[0] for topic, values in split.values.items()}

    def need_a_feature(self, features: Mapping[str, object]) -> None:
        """Raise PatientError if there is nothing that a learner uses."""
        if not any(column in features for column in self.columns):
            raise PatientError(f"expected at least one of the features {', '.join(self.columns)}")

    def many(
        self,
        ids: Sequence[str],
        columns: Mapping[str, Sequence[Any]],
        at: int,
        subjects: Sequence[str | None] | None = None,
    ) -> Split:
        """Split patients, given column by column; those with a fault are skipped."""
        ready, faults = self._ready(ids, columns, subjects)
        rows = [row for row in range(len(ids)) if row not in faults]
        if faults:
            ready = {kind: [values[row] for row in rows] for kind, values in ready.items()}
        used_ids = [ids[row] for row in rows]
        whose = [None if subjects is None else subjects[row] for row in rows]
        values = {
            part.topic: _encode(part, used_ids, whose, ready, at, history=self._history)
            for part in self._parts
        }
        return Split(rows, used_ids, values, [faults[row] for row in sorted(faults)])

    def faults(
        self,
        ids: Sequence[str],
        columns: Mapping[str, Sequence[Any]],
        subjects: Sequence[str | None] | None = None,
    ) -> list[Fault]:
        """Return what `many` would find wrong, by row."""
        faults = self._ready(ids, columns, subjects)[1]
        return [faults[row] for row in sorted(faults)]

    def _ready(
        self,
        ids: Sequence[str],
        columns: Mapping[str, Sequence[Any]],
        subjects: Sequence[str | None] | None,
    ) -> tuple[dict[_Kind, Sequence[Any]], dict[int, Fault]]:
        """Return the columns as they travel, and the faults by row."""
        faults: dict[int, Fault] = {}
        _check_tokens(ids, ID, faults)
        if subjects is not None:
            # None is for a patient with only this visit.
            _check_tokens(["-" if name is None else name for name in subjects], SUBJECT, faults)
        return {
            kind: self._converted(kind, columns[kind.name], faults) for kind in self._kinds
        }, faults

    def _converted(
        self, kind: _Kind, values: Sequence[Any], faults: dict[int, Fault]
    ) -> Sequence[Any]:
        """Return a column as it travels; where a value cannot be used, a fault."""
        return (self._categories if kind.categories else self._numbers)(kind, values, faults)

    def _categories(
        self, kind: _Kind, values: Sequence[Any], faults: dict[int, Fault]
    ) -> Sequence[Any]:
        if self._texts:
            values = [value.strip() for value in values]
        if kind.categories.issuperset(map(_hashable, values)):
            return values
        ready = list(values)
        for row, value in enumerate(values):
            if _hashable(value) in kind.categories:
                continue
            gap = _is_gap(value)
            if gap and kind.required:
                faults.setdefault(row, Fault(row, kind.name, _REQUIRED))
            elif not gap and (kind.required or not isinstance(value, str)):
                faults.setdefault(row, Fault(row, kind.name, "one of its categories"))
            ready[row] = None if gap else value
        return ready

    def _numbers(
        self, kind: _Kind, values: Sequence[Any], faults: dict[int, Fault]
    ) -> Sequence[float]:
        try:
            numbers = list(map(float, values))
        except (TypeError, ValueError, OverflowError):
            numbers = list(map(_number, values))
        # float() accepts True and "7", but readers of the record do not.
        if not self._texts and not _NUMBERS.issuperset(map(type, values)):
            pairs = zip(numbers, values, strict=True)
            numbers = [n if _is_number(v) else nan for n, v in pairs]
        if not all(map(isfinite, numbers)):
            for row, number in enumerate(numbers):
                gap = _is_gap(values[row])
                if not isfinite(number) and (kind.required or not gap):
                    expected = _REQUIRED if gap else "a finite number"
                    faults.setdefault(row, Fault(row, kind.name, expected))
        return numbers


def _kind(feature: "FeatureSettings | ClientFeature") -> _Kind:
    return _Kind(feature.name, frozenset(feature.categories or ()), feature.required)


def label_value(
    name: str, label: str | None, at: int, labels: Sequence[str], *, amends: bool = False
) -> bytes:
    """Return a label as it travels, or raise PatientError; None withdraws an earlier one."""
    faults: dict[int, Fault] = {}
    _check_tokens([name], ID, faults)
    for fault in faults.values():
        raise PatientError(str(fault))
    if label is not None and label not in labels:
        raise PatientError(f"label: expected one of {', '.join(labels)}")
    return encode_all([Label(name, label, at, amends or label is None)])[0]


def _encode(
    part: _Part,
    ids: Sequence[str],
    subjects: Sequence[str | None],
    ready: Mapping[_Kind, Sequence[Any]],
    at: int,
    *,
    history: bool,
) -> list[bytes]:
    names = [feature.name for feature in part.features]
    columns = [ready[_kind(feature)] for feature in part.features]
    rows = zip(*columns, strict=True)
    # A context says nothing of history: its patient's instances do.
    past = history and part.record is Instance
    record: Any = partial(Instance, history=True) if past else part.record
    documents: Iterable[Any] = (dict(zip(names, row, strict=True)) for row in rows)
    if part.ring is not None:
        seal = part.ring.text
        documents = (
            seal(name, msgspec.json.encode(x)) for name, x in zip(ids, documents, strict=True)
        )
    return encode_all(
        record(name, x, at, subject)
        for name, subject, x in zip(ids, subjects, documents, strict=True)
    )


def _check_tokens(names: Sequence[str], column: str, faults: dict[int, Fault]) -> None:
    joined = "".join(names)
    if joined.isprintable() and all(0 < len(name) <= MAX_TEXT for name in names):
        return
    for row, name in enumerate(names):
        if not 0 < len(name) <= MAX_TEXT or has_control_characters(name) or not _is_utf8(name):
            faults.setdefault(row, Fault(row, column, _TOKEN))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _hashable(value: object) -> object:
    return value if isinstance(value, str) else None


def _is_gap(value: object) -> bool:
    """Say whether a value is missing; nan is, where there is a number or was to be one."""
    return is_missing(value) or (isinstance(value, Real) and value != value)  # noqa: PLR0124 - nan


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | str | bytes)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return nan
