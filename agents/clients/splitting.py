"""Turns patients into records: each learner gets its own features, and nothing else.

Works on columns, so that a file of many patients costs little more than its bytes. Features travel
by name: a producer whose settings differ from the workers' then causes dead letters, not diagnoses
that are silently wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, TypeAlias

from schemas.kinds import MAX_TEXT, has_control_characters
from schemas.records import Context, Instance, Label
from schemas.writing import encode_all
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import FeatureSettings
from streams.kafka.topics import Topics

_NUMBERS = {int, float}
ID = ""
"""The column of a fault in the id."""


_Kind: TypeAlias = tuple[str, frozenset[str]]
"""A feature's name and its categories; none for a number."""


class PatientError(InputError):
    """A patient cannot be published; the message names what is wrong, never a value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one patient: its first invalid feature."""

    row: int
    column: str
    expected: str

    def __str__(self) -> str:
        name = f"feature {self.column!r}" if self.column else "id"
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
    features: tuple[FeatureSettings, ...]


class Splitter:
    """Splits patients as the settings say; contexts too, where there are any.

    texts   values come as text, as in a CSV file: numbers are read, blanks around them skipped
    """

    def __init__(self, settings: Settings, *, texts: bool = False) -> None:
        topics = Topics.of(settings)
        self._parts = [
            _Part(topics.instances(name), Instance, learner.features)
            for name, learner in settings.learners.items()
        ]
        if settings.ensemble.context is not None:
            self._parts.append(_Part(topics.contexts, Context, settings.ensemble.context.features))
        self._texts = texts
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

    def one(self, name: str, features: Mapping[str, object], at: int) -> dict[str, bytes]:
        """Return the value for each topic of one patient, or raise PatientError.

        Features that no learner uses are not sent.
        """
        for column in self.columns:
            if column not in features:
                raise PatientError(f"feature {column!r}: expected to be there")
        split = self.many([name], {column: [features[column]] for column in self.columns}, at)
        for fault in split.faults:
            raise PatientError(str(fault))
        return {topic: values[0] for topic, values in split.values.items()}

    def many(self, ids: Sequence[str], columns: Mapping[str, Sequence[Any]], at: int) -> Split:
        """Split patients, given column by column; those with a fault are skipped."""
        faults: dict[int, Fault] = {}
        _check_ids(ids, faults)
        ready = {kind: self._converted(*kind, columns[kind[0]], faults) for kind in self._kinds}
        rows = [row for row in range(len(ids)) if row not in faults]
        if faults:
            ready = {kind: [values[row] for row in rows] for kind, values in ready.items()}
        kept = [ids[row] for row in rows]
        values = {part.topic: _encode(part, kept, ready, at) for part in self._parts}
        return Split(rows, kept, values, [faults[row] for row in sorted(faults)])

    def _converted(
        self,
        name: str,
        categories: frozenset[str],
        values: Sequence[Any],
        faults: dict[int, Fault],
    ) -> Sequence[Any]:
        """Return a column as it travels; where a value cannot be used, a fault."""
        if categories:
            return self._categories(name, categories, values, faults)
        return self._numbers(name, values, faults)

    def _categories(
        self, name: str, known: frozenset[str], values: Sequence[Any], faults: dict[int, Fault]
    ) -> Sequence[Any]:
        if self._texts:
            values = [value.strip() for value in values]
        for row, value in enumerate(values):
            if not isinstance(value, str) or value not in known:
                faults.setdefault(row, Fault(row, name, "one of its categories"))
        return values

    def _numbers(
        self, name: str, values: Sequence[Any], faults: dict[int, Fault]
    ) -> Sequence[float]:
        try:
            numbers = list(map(float, values))
        except (TypeError, ValueError, OverflowError):
            numbers = list(map(_number, values))
        # True and "7" are numbers to float(), and no numbers to those who read the record.
        if not self._texts and not _NUMBERS.issuperset(map(type, values)):
            pairs = zip(numbers, values, strict=True)
            numbers = [n if _is_number(v) else nan for n, v in pairs]
        if not all(map(isfinite, numbers)):
            for row, number in enumerate(numbers):
                if not isfinite(number):
                    faults.setdefault(row, Fault(row, name, "a finite number"))
        return numbers


def _kind(feature: FeatureSettings) -> _Kind:
    return feature.name, frozenset(feature.categories or ())


def label_value(name: str, label: str, at: int, labels: Sequence[str]) -> bytes:
    """Return a label as it travels, or raise PatientError."""
    faults: dict[int, Fault] = {}
    _check_ids([name], faults)
    for fault in faults.values():
        raise PatientError(str(fault))
    if label not in labels:
        raise PatientError(f"label: expected one of {', '.join(labels)}")
    return encode_all([Label(name, label, at)])[0]


def _encode(
    part: _Part,
    ids: Sequence[str],
    ready: Mapping[_Kind, Sequence[Any]],
    at: int,
) -> list[bytes]:
    names = [feature.name for feature in part.features]
    columns = [ready[_kind(feature)] for feature in part.features]
    rows = zip(*columns, strict=True)
    record = part.record
    return encode_all(
        record(name, dict(zip(names, row, strict=True)), at)
        for name, row in zip(ids, rows, strict=True)
    )


def _check_ids(ids: Sequence[str], faults: dict[int, Fault]) -> None:
    joined = "".join(ids)
    if joined.isprintable() and all(0 < len(name) <= MAX_TEXT for name in ids):
        return
    for row, name in enumerate(ids):
        if not 0 < len(name) <= MAX_TEXT or has_control_characters(name) or not _is_utf8(name):
            faults[row] = Fault(row, ID, f"1 to {MAX_TEXT} characters, none of them a control one")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | str | bytes)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return nan
