"""Values of a batch of messages into records: the good ones, and an error for each bad one.

A reader never raises on what it reads. The way of a value, fast parts first:

1. Its length is checked, then msgspec parses it and checks types and ranges in one pass.
2. A proof that no key came twice and that `v` is there (`schemas.strict`).
3. Checks over the whole batch at once: ids, cubes, names that the settings know.
4. Only what fails one of these is looked at again, slowly, to say why (`fault`).

`fault` alone defines what is good: steps 1 to 3 accept a value exactly if `fault` finds none.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from schemas.errors import RecordError
from schemas.explain import first_fault
from schemas.kinds import MAX_BYTES, MAX_TEXT, has_control_characters
from schemas.reasons import Reason
from schemas.records import Record
from schemas.strict import is_plain, parse

R = TypeVar("R", bound=Record)

Values = Sequence[bytes | None]
"""Message values as a consumer gets them; None is a tombstone."""

Errors = list[tuple[int, RecordError]]
"""Positions in the batch, ascending, each with what is wrong there."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What the fast decoder raises on bad input."""


class BatchReader(ABC, Generic[R]):
    """The steps that all readers share; a subclass says what it decodes and what it knows.

    `record` is what is decoded, `published` the record that it stands for, if that is another.
    """

    def __init__(
        self, record: type[R], limit: int = MAX_BYTES, published: type[Record] | None = None
    ) -> None:
        self.record = record
        self.published = published or record
        self.limit = limit
        self._decode: Callable[[bytes], R] = msgspec.json.Decoder(record).decode

    def fault(self, value: bytes | None) -> RecordError | None:
        """Say what is wrong with a value, or None. Slow."""
        try:
            bounded = self._bounded(value)
            document = parse(bounded)
            fault = self._document_fault(document.root)
            if fault is None and not document.finite:
                fault = RecordError(Reason.NOT_FINITE, "expected finite numbers in every field")
            return fault or self._record_fault(self._decode(bounded))
        except RecordError as error:
            return error
        except UNREADABLE:
            return RecordError(Reason.MALFORMED, "expected JSON that the decoder can take")

    def _bounded(self, value: bytes | None) -> bytes:
        if not value:
            raise RecordError(Reason.EMPTY, "expected a JSON object")
        if len(value) > self.limit:
            raise RecordError(Reason.TOO_LARGE, f"expected at most {self.limit} bytes")
        return value

    def _sift(self, values: Values) -> tuple[list[R], list[int], Errors]:
        """Return the good records, their positions, and the errors."""
        records, positions, errors = self._decode_all(values)
        faults = self._faults(records, [values[position] or b"" for position in positions])
        if faults:
            errors += [(positions[k], fault) for k, fault in faults.items()]
            errors.sort(key=lambda error: error[0])
            records = [record for k, record in enumerate(records) if k not in faults]
            positions = [position for k, position in enumerate(positions) if k not in faults]
        return records, positions, errors

    def _decode_all(self, values: Values) -> tuple[list[R], list[int], Errors]:
        whole = [value for value in values if value is not None and len(value) <= self.limit]
        if len(whole) == len(values):
            try:
                return list(map(self._decode, whole)), list(range(len(whole))), []
            except UNREADABLE:
                pass  # one is bad at least: which, and why, is found below
        return self._decode_each(values)

    def _decode_each(self, values: Values) -> tuple[list[R], list[int], Errors]:
        records: list[R] = []
        positions: list[int] = []
        errors: Errors = []
        for position, value in enumerate(values):
            try:
                records.append(self._decode(self._bounded(value)))
                positions.append(position)
            except UNREADABLE:
                errors.append((position, self._refusal(value)))
        return records, positions, errors

    def _faults(self, records: list[R], values: list[bytes]) -> dict[int, RecordError]:
        """Return what is wrong with decoded values, by their index."""
        faults: dict[int, RecordError] = {}
        for k in self._unproven(records, values):
            fault = None if is_plain(values[k]) else self.fault(values[k])
            if fault is not None:
                faults[k] = fault
        if not self._all_good(records):
            for k, record in enumerate(records):
                fault = self._record_fault(record)
                if fault is not None:
                    faults.setdefault(k, fault)
        return faults

    def _refusal(self, value: bytes | None) -> RecordError:
        # How deep the decoder can go depends on the stack: it may refuse what `fault` would accept.
        deep = RecordError(Reason.MALFORMED, "expected JSON that is not nested so deeply")
        return self.fault(value) or deep

    @abstractmethod
    def _unproven(self, records: list[R], values: list[bytes]) -> list[int]:
        """Return where a cheap proof fails that no key came twice and that `v` is there."""

    @abstractmethod
    def _all_good(self, records: list[R]) -> bool:
        """Prove cheaply that `_record_fault` finds nothing in any record; False if not proven."""

    @abstractmethod
    def _record_fault(self, record: R) -> RecordError | None:
        """Say what the decoder could not check and is wrong, or None."""

    def _document_fault(self, document: object) -> RecordError | None:
        fault = first_fault(document, self.published)
        return None if fault is None else fault.error()


def id_fault(record: Record) -> RecordError | None:
    """Say whether an id holds control characters."""
    if not has_control_characters(record.id):
        return None
    expected = f"1 to {MAX_TEXT} characters, none of them a control character"
    return RecordError(Reason.BAD_ID, f"id: expected {expected}")


def ids_good(records: Sequence[Record]) -> bool:
    """Prove cheaply that no id holds control characters; False if not proven."""
    return "".join([record.id for record in records]).isprintable()
