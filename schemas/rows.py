"""Instances and contexts of a batch of messages, as rows of numbers: what learners decide by.

The reader is built from the learner's features. It makes its own record type with exactly these, so
that msgspec checks names, dimension and types while it parses, in both forms of `x`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from schemas.batches import BatchReader, Errors, Values, id_fault, ids_good
from schemas.errors import RecordError
from schemas.explain import fault_at
from schemas.kinds import MAX_BYTES, MAX_TEXT, VERSION, Id, Millis, Name, has_control_characters
from schemas.reasons import Reason
from schemas.records import Instance
from schemas.strict import are_lean, is_lean

_KEYS = 4
"""v, id, x, at."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature as readers know it: a number, or one of its categories."""

    name: str
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        names = (self.name, *(self.categories or ()))
        if not all(1 <= len(name) <= MAX_TEXT for name in names):
            raise ValueError(f"features and categories need names of 1 to {MAX_TEXT} characters")
        # JSON writes such a name with escapes, which the decoder does not expect in known names.
        if has_control_characters(self.name) or '"' in self.name or "\\" in self.name:
            raise ValueError("names of features must not hold quotes, backslashes or line breaks")


@dataclass(frozen=True, slots=True)
class RowBatch:
    """The good rows of a batch, one entry each, and the errors.

    A row has one number per feature, in their order: the value itself, or the category's index.
    """

    ids: list[str]
    at: list[int]
    rows: list[Sequence[float]]
    positions: list[int]
    errors: Errors


class RowReader(BatchReader[Any]):
    """Reads instances of a learner with the given features; contexts too, which are alike.

    >>> reader = RowReader([Feature("age"), Feature("sex", ("f", "m"))])
    >>> reader.read([b'{"v":1,"id":"a","x":[41,"m"],"at":5}',
    ...              b'{"v":1,"id":"b","x":{"sex":"f","age":7.5},"at":6}']).rows
    [[41.0, 1.0], [7.5, 0.0]]
    >>> reader.read([b'{"v":1,"id":"a","x":[41],"at":5}']).errors
    [(0, RecordError('wrong_dimension: x: expected 2 entries'))]
    """

    def __init__(self, features: Sequence[Feature], *, limit: int = MAX_BYTES) -> None:
        if not features or len({feature.name for feature in features}) < len(features):
            raise ValueError("a reader of rows needs features, each with a name of its own")
        super().__init__(_typed(features), limit, published=Instance)
        self.features = tuple(features)
        self._categories = [
            (j, {category: float(i) for i, category in enumerate(feature.categories)})
            for j, feature in enumerate(features)
            if feature.categories is not None
        ]

    def read(self, values: Values) -> RowBatch:
        """Read a batch; never raises on bad input."""
        records, positions, errors = self._sift(values)
        rows: list[Sequence[float]] = [_flat(record.x) for record in records]
        return RowBatch(
            ids=[record.id for record in records],
            at=[record.at for record in records],
            rows=[self._numbers(row) for row in rows] if self._categories else rows,
            positions=positions,
            errors=errors,
        )

    def _numbers(self, row: Sequence[Any]) -> Sequence[float]:
        numbers = list(row)
        for j, index in self._categories:
            numbers[j] = index[numbers[j]]
        return numbers

    def _unproven(self, records: list[Any], values: list[bytes]) -> list[int]:
        named = _KEYS + len(self.features)
        keys = [_KEYS if type(record.x) is tuple else named for record in records]
        if are_lean(values, sum(keys)):
            return []
        return [k for k, r in enumerate(records) if not is_lean(values[k], keys[k], r.id)]

    def _all_good(self, records: list[Any]) -> bool:
        return ids_good(records) and all(
            {_flat(record.x)[j] for record in records} <= index.keys()
            for j, index in self._categories
        )

    def _record_fault(self, record: Any) -> RecordError | None:
        row = _flat(record.x)
        for j, index in self._categories:
            if row[j] not in index:
                return self._unknown_category(j)
        return id_fault(record)

    def _document_fault(self, document: Any) -> RecordError | None:
        x = document.get("x") if isinstance(document, dict) else None
        if not isinstance(x, list | dict):
            return super()._document_fault(document)
        fault = super()._document_fault({**document, "x": []})
        return fault or (self._array_fault(x) if isinstance(x, list) else self._object_fault(x))

    def _array_fault(self, x: list[object]) -> RecordError | None:
        if len(x) != len(self.features):
            return _fault(Reason.WRONG_DIMENSION, "x", f"{len(self.features)} entries")
        return self._values_fault(x)

    def _object_fault(self, x: dict[str, object]) -> RecordError | None:
        for j, feature in enumerate(self.features):
            if feature.name not in x:
                return _fault(Reason.MISSING_FEATURE, self._path(j), "to be there")
        if len(x) > len(self.features):
            return _fault(Reason.EXTRA_FEATURE, "x", "the features of the learner only")
        return self._values_fault([x[feature.name] for feature in self.features])

    def _values_fault(self, row: list[object]) -> RecordError | None:
        for j, (value, feature) in enumerate(zip(row, self.features, strict=True)):
            if feature.categories is None:
                fault = fault_at(value, float, self._path(j))
                if fault is not None:
                    return fault.error()
            elif not isinstance(value, str):
                return _fault(Reason.WRONG_TYPE, self._path(j), "the name of a category")
            elif value not in feature.categories:
                return self._unknown_category(j)
        return None

    def _unknown_category(self, j: int) -> RecordError:
        return _fault(Reason.UNKNOWN_CATEGORY, self._path(j), "one of its categories")

    def _path(self, j: int) -> str:
        return f"x[{j}] ({self.features[j].name})"


def _typed(features: Sequence[Feature]) -> type[Any]:
    """Make a record type whose `x` holds these features and nothing else."""
    kinds = [float if feature.categories is None else Name for feature in features]
    fields = [f"f{j}" for j in range(len(features))]
    named = msgspec.defstruct(
        "Named",
        list(zip(fields, kinds, strict=True)),
        rename=dict(zip(fields, [feature.name for feature in features], strict=True)),
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
    )
    ordered = tuple.__class_getitem__(tuple(kinds))
    fields_of_record = [("id", Id), ("x", ordered | named), ("at", Millis)]
    return msgspec.defstruct(
        "Row", fields_of_record, tag_field="v", tag=VERSION, frozen=True, gc=False
    )


def _flat(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else msgspec.structs.astuple(x)


def _fault(reason: Reason, path: str, expected: str) -> RecordError:
    return RecordError(reason, f"{path}: expected {expected}")
