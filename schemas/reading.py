"""Message values to records, a batch at a time: the good records, and an error for each bad value.

A reader never raises on what it reads. A value passes these steps:

1. Its length is checked, and how deeply it is nested.
2. msgspec parses it and checks types and ranges in one pass.
3. What msgspec cannot check is checked for the whole batch at once: ids, cubes, and names that have
   to be in the settings.
4. Only what fails is looked at again, slowly, to say why (`schemas.explain`).

Fields that a record does not have are skipped. If an object names a key twice, each value must be
of its kind and the last one counts, as in every common JSON parser.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from schemas.errors import RecordError
from schemas.explain import Fault, explain, first_fault
from schemas.kinds import (
    MAX_BYTES,
    MAX_CUBE,
    MAX_DEPTH,
    MAX_TEXT,
    are_cubes,
    has_control_characters,
)
from schemas.records import Feedback, Label, Prediction, Record
from schemas.refusals import Reason

R = TypeVar("R", bound=Record)

Values = Sequence[bytes | None]
"""Message values as a consumer gets them; None is a tombstone."""

Errors = list[tuple[int, RecordError]]
"""Positions in the batch, ascending, each with what is wrong there."""

_UNREADABLE = (msgspec.MsgspecError, ValueError)
"""What the decoder raises on bad input."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[R]):
    """What a batch of values held: records with their positions in the batch, and the errors."""

    records: list[R]
    positions: list[int]
    errors: Errors


class _NoRecord(msgspec.Struct, tag_field="v", tag=0):
    """Makes `v` required: msgspec asks for it only if it has to choose between two structs."""

    impossible: Annotated[int, Meta(ge=1, le=0)]


def decoder(record: type[R]) -> Callable[[bytes], R]:
    """Return what decodes one record and refuses others, such as those without a version."""
    return msgspec.json.Decoder(record | _NoRecord).decode


class Check(NamedTuple):
    """A condition on all records of a batch, and the error of a record that does not meet it."""

    passes: Callable[[Sequence[Any]], bool]
    reason: Reason
    detail: str


class BatchReader(Generic[R]):
    """The steps that all readers share; `record` is the type that they decode."""

    def __init__(self, record: type[R], checks: Sequence[Check]) -> None:
        self.record = record
        self._checks = checks
        self._decode = decoder(record)

    def fault(self, value: bytes | None) -> RecordError | None:
        """Say what is wrong with one value, or None."""
        errors = self._sift([value]).errors
        return errors[0][1] if errors else None

    def _sift(self, values: Values) -> Batch[R]:
        """Tell the good records from the bad values."""
        batch = self._decode_all(values)
        if all(check.passes(batch.records) for check in self._checks):
            return batch
        good: Batch[R] = Batch([], [], batch.errors)
        for position, record in zip(batch.positions, batch.records, strict=True):
            fault = self._check_one(record)
            if fault is None:
                good.records.append(record)
                good.positions.append(position)
            else:
                good.errors.append((position, fault))
        good.errors.sort(key=lambda error: error[0])
        return good

    def _decode_all(self, values: Values) -> Batch[R]:
        # Each level of nesting takes a byte at least: short values need not be looked into.
        bounded = [
            value
            for value in values
            if value and (len(value) <= MAX_DEPTH or _size_fault(value) is None)
        ]
        if len(bounded) == len(values):
            try:
                return Batch(list(map(self._decode, bounded)), list(range(len(bounded))), [])
            except _UNREADABLE:
                pass  # at least one is bad: which, and why, is found below
        return self._decode_each(values)

    def _decode_each(self, values: Values) -> Batch[R]:
        batch: Batch[R] = Batch([], [], [])
        for position, value in enumerate(values):
            fault = _size_fault(value)
            if fault is None and value is not None:
                try:
                    batch.records.append(self._decode_one(value))
                    batch.positions.append(position)
                except _UNREADABLE:
                    fault = explain(value, self._fault_in)
            if fault is not None:
                batch.errors.append((position, fault))
        return batch

    def _decode_one(self, value: bytes) -> R:
        return self._decode(value)

    def _check_one(self, record: R) -> RecordError | None:
        failed = (check for check in self._checks if not check.passes([record]))
        return next((RecordError(check.reason, check.detail) for check in failed), None)

    def _fault_in(self, document: Any) -> Fault | None:
        """Say what is wrong with a parsed document, or None."""
        return first_fault(document, self.record)


def _size_fault(value: bytes | None) -> RecordError | None:
    """Say what keeps a value from being parsed at all, or None."""
    if not value:
        return RecordError(Reason.EMPTY, "expected a JSON object")
    if len(value) > MAX_BYTES:
        return RecordError(Reason.TOO_LARGE, f"expected at most {MAX_BYTES} bytes")
    if _is_too_deep(value):
        return RecordError(
            Reason.MALFORMED, f"expected arrays and objects nested at most {MAX_DEPTH} deep"
        )
    return None


_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _is_too_deep(value: bytes) -> bool:
    """Say whether a value is nested too deeply.

    Parsers have a limit of their own, which depends on the Python version and on the stack. Ours is
    below them all, so that a value is good everywhere or nowhere.
    """
    # Each level opens a bracket: few brackets, no need to look where they are.
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _TEXTS.sub(b"", value).translate(None, _NO_BRACKETS)
    depths = accumulate(1 if bracket in b"[{" else -1 for bracket in brackets)
    return max(depths, default=0) > MAX_DEPTH


class Reader(BatchReader[R]):
    """Reads records of one type.

    `known` gives the names that a field may hold: `{"label": labels}`. Votes are checked against
    the labels and rules given there. `checks` come last.

    >>> batch = Reader(Label).read([b'{"v":1,"id":"a17","label":"ill","at":5}', b'{"v":1,"id":7}'])
    >>> batch.records
    [Label(id='a17', label='ill', at=5, amends=False)]
    >>> batch.errors
    [(1, RecordError('wrong_type: id: expected text of 1 to 200 characters'))]
    """

    def __init__(
        self,
        record: type[R],
        *,
        known: Mapping[str, Collection[str]] | None = None,
        checks: Sequence[Check] = (),
    ) -> None:
        super().__init__(record, [*_checks(record, known or {}), *checks])

    def read(self, values: Values) -> Batch[R]:
        """Read a batch; never raises on bad input."""
        return self._sift(values)

    def one(self, value: bytes | None) -> R:
        """Read one value; raise RecordError if it is bad."""
        batch = self.read([value])
        for _, error in batch.errors:
            raise error
        return batch.records[0]


@dataclass(frozen=True, slots=True)
class LabelBatch:
    """The good labels of a batch, as columns, and the errors.

    labels holds indices into the label set, None for a withdrawal; amends tells which of them count
    whatever was said before; positions are those of the messages in the batch.
    """

    ids: list[str]
    labels: list[int | None]
    amends: list[bool]
    at: list[int]
    positions: list[int]
    errors: Errors


class LabelReader(BatchReader[Label]):
    """Reads labels and turns their names into indices of the label set.

    >>> reader = LabelReader(["benign", "malignant"])
    >>> reader.read([b'{"v":1,"id":"a17","label":"malignant","at":5}']).labels
    [1]
    >>> reader.read([b'{"v":1,"id":"a17","label":"other","at":5}']).errors
    [(0, RecordError('unknown_label: label: expected a label of the settings'))]
    """

    def __init__(self, labels: Sequence[str], checks: Sequence[Check] = ()) -> None:
        super().__init__(Label, [*_checks(Label, {"label": labels}), *checks])
        self._index: dict[str | None, int | None] = {label: i for i, label in enumerate(labels)}
        self._index[None] = None

    def read(self, values: Values) -> LabelBatch:
        """Read a batch; never raises on bad input."""
        batch = self._sift(values)
        return LabelBatch(
            ids=[record.id for record in batch.records],
            labels=[self._index[record.label] for record in batch.records],
            amends=[record.amends for record in batch.records],
            at=[record.at for record in batch.records],
            positions=batch.positions,
            errors=batch.errors,
        )


def _checks(record: type[Record], known: Mapping[str, Collection[str]]) -> list[Check]:
    """Return the checks of a record whose fields may hold only the known names."""
    checks = [_names_check(field, known[field], field, _column(field)) for field in known]
    checks.append(ID_CHECK)
    if "subject" in record.__struct_fields__:
        checks.append(SUBJECT_CHECK)
    if issubclass(record, Prediction | Feedback):
        checks.append(_CUBE_CHECK)
        if "label" in known:
            checks.append(_names_check("label", known["label"], "votes.*", _labels_voted))
        if "rule" in known:
            checks.append(_names_check("rule", known["rule"], "names in votes", _rules_voting))
    return checks


ID_CHECK = Check(
    lambda records: not has_control_characters("".join([record.id for record in records])),
    Reason.BAD_ID,
    f"id: expected 1 to {MAX_TEXT} characters, none of them a control character",
)

SUBJECT_CHECK = Check(
    lambda records: (
        not has_control_characters(
            "".join([record.subject for record in records if record.subject])
        )
    ),
    Reason.BAD_ID,
    f"subject: expected 1 to {MAX_TEXT} characters, none of them a control character",
)

_CUBE_CHECK = Check(
    lambda records: are_cubes([record.cube for record in records]),
    Reason.OUT_OF_RANGE,
    f"cube: expected an integer from 0 to {MAX_CUBE}, as decimal digits",
)

_KNOWN = {
    "label": (Reason.UNKNOWN_LABEL, "a label of the settings"),
    "predicted": (Reason.UNKNOWN_LABEL, "a label of the settings"),
    "was": (Reason.UNKNOWN_LABEL, "a label of the settings"),
    "learner": (Reason.UNKNOWN_LEARNER, "a learner of the settings"),
    "rule": (Reason.UNKNOWN_RULE, "a rule of the learner"),
}

_Column = Callable[[Sequence[Any]], Iterable[str | None]]


def _names_check(kind: str, names: Collection[str], path: str, column: _Column) -> Check:
    # Null passes here: where a field must not be null, msgspec has refused it.
    known: frozenset[str | None] = frozenset([*names, None])
    reason, expected = _KNOWN[kind]
    return Check(
        lambda records: known.issuperset(column(records)), reason, f"{path}: expected {expected}"
    )


def _column(field: str) -> _Column:
    get = attrgetter(field)
    return lambda records: map(get, records)


def _labels_voted(records: Sequence[Any]) -> Iterable[str]:
    return chain.from_iterable(record.votes.values() for record in records if record.votes)


def _rules_voting(records: Sequence[Any]) -> Iterable[str]:
    return chain.from_iterable(record.votes for record in records if record.votes)
