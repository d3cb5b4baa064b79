"""Records of any type from a batch of messages."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import msgspec

from schemas.batches import BatchReader, Errors, R, Values, id_fault, ids_good
from schemas.errors import RecordError
from schemas.kinds import MAX_BYTES, MAX_CUBE, are_cubes
from schemas.reasons import Reason
from schemas.records import Feedback, Prediction, Record

_KNOWN = {
    "label": (Reason.UNKNOWN_LABEL, "a label of the settings"),
    "predicted": (Reason.UNKNOWN_LABEL, "a label of the settings"),
    "learner": (Reason.UNKNOWN_LEARNER, "a learner of the settings"),
    "rule": (Reason.UNKNOWN_RULE, "a rule of the learner"),
}


@dataclass(frozen=True, slots=True)
class Batch(Generic[R]):
    """What a batch of values held: records with their positions in the batch, and the errors."""

    records: list[R]
    positions: list[int]
    errors: Errors


class Reader(BatchReader[R]):
    """Reads records of one type.

    `known` gives the names that a field may hold: `{"label": labels}`. Votes are held against the
    labels and rules given there.

    >>> from schemas.records import Label
    >>> batch = Reader(Label).read([b'{"v":1,"id":"a17","label":"ill","at":5}', b'{"v":1,"id":7}'])
    >>> batch.records
    [Label(id='a17', label='ill', at=5)]
    >>> batch.errors
    [(1, RecordError('wrong_type: id: expected text of 1 to 200 characters'))]
    """

    def __init__(
        self,
        record: type[R],
        *,
        limit: int = MAX_BYTES,
        known: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        super().__init__(record, limit)
        self._known = {field: frozenset(names) for field, names in (known or {}).items()}
        self._counts = issubclass(record, Prediction | Feedback)
        self._encode: Callable[[Record], bytes] = msgspec.json.Encoder().encode

    def read(self, values: Values) -> Batch[R]:
        """Read a batch; never raises on bad input."""
        return Batch(*self._sift(values))

    def one(self, value: bytes | None) -> R:
        """Read one value; raise RecordError if it is bad."""
        batch = self.read([value])
        for _, error in batch.errors:
            raise error
        return batch.records[0]

    def _unproven(self, records: list[R], values: list[bytes]) -> list[int]:
        # Most records are read by the program that wrote them: the same bytes again prove it all.
        again = list(map(self._encode, records))
        if again == values:
            return []
        return [k for k, value in enumerate(values) if again[k] != value]

    def _all_good(self, records: list[R]) -> bool:
        return (
            ids_good(records)
            and all(
                names.issuperset([getattr(record, field) for record in records])
                for field, names in self._known.items()
            )
            and not (self._counts and self._counting_faults(records))
        )

    def _counting_faults(self, records: Sequence[Any]) -> bool:
        """Prove cheaply that `_counting_fault` finds nothing in any record; True if not proven."""
        if not are_cubes([record.cube for record in records]):
            return True
        votes = [record.votes for record in records if record.votes]
        return bool(self._known) and any(map(self._votes_fault, votes))

    def _record_fault(self, record: R) -> RecordError | None:
        for field, names in self._known.items():
            if getattr(record, field) not in names:
                return _unknown(field, field)
        return id_fault(record) or (self._counting_fault(record) if self._counts else None)

    def _counting_fault(self, record: Any) -> RecordError | None:
        """Look at what a learner counts by: its cube and the votes of its rules."""
        if not are_cubes([record.cube]):
            expected = f"an integer from 0 to {MAX_CUBE}, as decimal digits"
            return RecordError(Reason.OUT_OF_RANGE, f"cube: expected {expected}")
        return self._votes_fault(record.votes or {})

    def _votes_fault(self, votes: dict[str, str]) -> RecordError | None:
        labels, rules = self._known.get("label"), self._known.get("rule")
        if labels is not None and not labels.issuperset(votes.values()):
            return _unknown("label", "votes.*")
        if rules is not None and not rules.issuperset(votes):
            return _unknown("rule", "names in votes")
        return None


def _unknown(field: str, path: str) -> RecordError:
    reason, expected = _KNOWN[field]
    return RecordError(reason, f"{path}: expected {expected}")
