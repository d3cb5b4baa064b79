"""Instances and contexts as rows of numbers: what learners decide by.

The reader is built from the learner's features. It makes a record type of its own with exactly
these, so that msgspec checks names, dimension, types and categories while it parses, in both forms
of `x`.

Most records are complete, so each batch is first read as if all were. Only where that fails a value
is read again by a type in which every feature may be missing: `null`, no entry in the object, or a
word that stands for it (`NA`, `?`). A category that is not among the feature's is missing as well.
What is left is refused: text where a number belongs, a feature that does not exist, and a missing
value of a feature that is `required`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import nan
from typing import Any, Literal, get_args

import msgspec

from schemas.errors import RecordError
from schemas.explain import Fault, fault_at, first_fault
from schemas.kinds import (
    MAX_BYTES,
    MAX_TEXT,
    VERSION,
    Id,
    Millis,
    has_control_characters,
    is_missing,
)
from schemas.reading import (
    ID_CHECK,
    SUBJECT_CHECK,
    Batch,
    BatchReader,
    Check,
    Errors,
    Values,
    decoder,
)
from schemas.records import Instance
from schemas.refusals import Reason
from schemas.sealed import PREFIX, Opener, opened


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature as readers know it: a number, or one of its categories; perhaps required."""

    name: str
    categories: tuple[str, ...] | None = None
    required: bool = False

    def __post_init__(self) -> None:
        if self.categories == ():
            raise ValueError("a feature with categories needs at least one")
        names = (self.name, *(self.categories or ()))
        if not all(1 <= len(name) <= MAX_TEXT for name in names):
            raise ValueError(f"features and categories need names of 1 to {MAX_TEXT} characters")
        # JSON writes such a name with escapes, which the decoder does not expect in known names.
        if has_control_characters(self.name) or '"' in self.name or "\\" in self.name:
            raise ValueError("names of features must not hold quotes, backslashes or line breaks")


@dataclass(frozen=True, slots=True)
class RowBatch:
    """The good rows of a batch, as columns, and the errors.

    A row has one number per feature, in order: the value itself, or the index of the category; nan
    where it is missing. `subjects` are None where none was named, `history` marks patients of the
    past.
    """

    ids: list[str]
    subjects: list[str | None]
    at: list[int]
    history: list[bool]
    rows: list[Sequence[float]]
    positions: list[int]
    errors: Errors

    def only(self, places: Sequence[int]) -> "RowBatch":
        """Return some of the rows."""
        columns = {
            field.name: [getattr(self, field.name)[k] for k in places]
            for field in fields(self)
            if field.name != "errors"
        }
        return replace(self, **columns)


class RowReader(BatchReader[Any]):
    """Reads instances, or contexts, with the given features; `opener` decrypts them.

    >>> reader = RowReader([Feature("age"), Feature("sex", ("f", "m"))])
    >>> reader.read([b'{"v":1,"id":"a","x":[41,"m"],"at":5}',
    ...              b'{"v":1,"id":"b","x":{"sex":"f","age":7.5},"at":6}']).rows
    [[41.0, 1.0], [7.5, 0.0]]
    >>> reader.read([b'{"v":1,"id":"c","x":{"sex":null},"at":7}']).rows
    [[nan, nan]]
    >>> reader.read([b'{"v":1,"id":"a","x":[41],"at":5}']).errors
    [(0, RecordError('wrong_dimension: x: expected 2 entries'))]
    """

    def __init__(
        self,
        features: Sequence[Feature],
        checks: Sequence[Check] = (),
        opener: Opener | None = None,
    ) -> None:
        if not features or len({feature.name for feature in features}) < len(features):
            raise ValueError("a reader of rows needs features, each with a name of its own")
        complete = _row_type(features, lambda f: Literal[f.categories] if f.categories else float)
        super().__init__(complete, [ID_CHECK, SUBJECT_CHECK, *checks])
        self.features = tuple(features)
        self._opener = opener
        self._decode_gaps = decoder(_row_type(features, _with_gaps))
        self._categories = [
            (j, {category: float(i) for i, category in enumerate(feature.categories)})
            for j, feature in enumerate(features)
            if feature.categories is not None
        ]

    def read(self, values: Values) -> RowBatch:
        """Read a batch; never raises on bad input."""
        batch = self._sift(values)
        rows: list[Sequence[float]] = [_flat(record.x) for record in batch.records]
        return RowBatch(
            ids=[record.id for record in batch.records],
            subjects=[record.subject for record in batch.records],
            at=[record.at for record in batch.records],
            history=[record.history for record in batch.records],
            rows=[self._numbers(row) for row in rows] if self._categories else rows,
            positions=batch.positions,
            errors=batch.errors,
        )

    def _sift(self, values: Values) -> Batch[Any]:
        if self._opener is None:
            return super()._sift(values)
        clear, faults = list(values), dict[int, RecordError]()
        for i, value in enumerate(values):
            if value and len(value) <= MAX_BYTES:
                try:
                    clear[i] = opened(value, self._opener)
                except RecordError as error:
                    clear[i], faults[i] = None, error
        batch = super()._sift(clear)
        batch.errors[:] = [(i, faults.get(i, error)) for i, error in batch.errors]
        return batch

    def _numbers(self, row: Sequence[Any]) -> Sequence[float]:
        numbers = list(row)
        for j, index in self._categories:
            numbers[j] = index.get(numbers[j], nan)
        return numbers

    def _decode_one(self, value: bytes) -> Any:
        try:
            return super()._decode_one(value)
        except msgspec.ValidationError:
            record = self._decode_gaps(value)
            row = _flat(record.x)
            if self._values_fault(row) is not None:
                raise
        filled = tuple(map(_with_nan, self.features, row))
        return self.record(record.id, filled, record.at, record.subject, record.history)

    def _fault_in(self, document: Any) -> Fault | None:
        x = document.get("x") if isinstance(document, dict) else None
        if isinstance(x, str) and x.startswith(PREFIX):
            return Fault(Reason.UNDECRYPTABLE, "x", "features in the clear: there are no keys here")
        if not isinstance(x, list | dict):
            return first_fault(document, Instance)
        fault = first_fault({**document, "x": []}, Instance)
        return fault or (self._array_fault(x) if isinstance(x, list) else self._object_fault(x))

    def _array_fault(self, x: list[object]) -> Fault | None:
        if len(x) != len(self.features):
            return Fault(Reason.WRONG_DIMENSION, "x", f"{len(self.features)} entries")
        return self._values_fault(x)

    def _object_fault(self, x: dict[str, object]) -> Fault | None:
        for j, feature in enumerate(self.features):
            if feature.required and feature.name not in x:
                return Fault(Reason.MISSING_FEATURE, self._path(j), "to be there")
        if not x.keys() <= {feature.name for feature in self.features}:
            return Fault(Reason.EXTRA_FEATURE, "x", "the features of the learner only")
        return self._values_fault([x.get(feature.name) for feature in self.features])

    def _values_fault(self, row: Sequence[object]) -> Fault | None:
        faults = (self._value_fault(j, value) for j, value in enumerate(row))
        return next((fault for fault in faults if fault is not None), None)

    def _value_fault(self, j: int, value: object) -> Fault | None:
        feature = self.features[j]
        if value not in (feature.categories or ()) and is_missing(value):
            return self._gap_fault(j)
        if feature.categories is None:
            return fault_at(value, float, self._path(j))
        if not isinstance(value, str):
            return Fault(Reason.WRONG_TYPE, self._path(j), "the name of a category")
        if feature.required and value not in feature.categories:
            return Fault(Reason.UNKNOWN_CATEGORY, self._path(j), "one of its categories")
        return None

    def _gap_fault(self, j: int) -> Fault | None:
        if not self.features[j].required:
            return None
        return Fault(Reason.MISSING_FEATURE, self._path(j), "a value: the feature is required")

    def _path(self, j: int) -> str:
        return f"x[{j}] ({self.features[j].name})"


def _row_type(features: Sequence[Feature], kind: Callable[[Feature], Any]) -> type[Any]:
    """Make a record type whose `x` holds these features, each of its kind, and nothing else."""
    kinds = [kind(feature) for feature in features]
    # An absent entry is one that is missing, where the kind has room for that.
    absent = [() if type(None) not in get_args(field_type) else (None,) for field_type in kinds]
    fields = [f"f{j}" for j in range(len(features))]
    by_name = msgspec.defstruct(
        "ByName",
        [
            (field, field_type, *default)
            for field, field_type, default in zip(fields, kinds, absent, strict=True)
        ],
        rename=dict(zip(fields, [feature.name for feature in features], strict=True)),
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
        kw_only=True,
    )
    in_order = tuple.__class_getitem__(tuple(kinds))
    fields_of_record: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("id", Id),
        ("x", in_order | by_name),
        ("at", Millis),
        ("subject", Id | None, None),
        ("history", bool, False),
    ]
    return msgspec.defstruct(
        "Row", fields_of_record, tag_field="v", tag=VERSION, frozen=True, gc=False
    )


def _with_gaps(feature: Feature) -> Any:
    """Return the type of a feature that may be missing; `_values_fault` checks what it holds."""
    return str | None if feature.categories else float | str | None


def _with_nan(feature: Feature, value: Any) -> Any:
    """Return a value as complete records hold it, nan for a missing one."""
    return nan if value not in (feature.categories or ()) and is_missing(value) else value


def _flat(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else msgspec.structs.astuple(x)
