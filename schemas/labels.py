"""Labels of a batch of messages, as columns: what the ensemble learner settles by."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.batches import BatchReader, Errors, Values, id_fault, ids_good
from schemas.errors import RecordError
from schemas.kinds import MAX_BYTES
from schemas.reasons import Reason
from schemas.records import Label
from schemas.strict import are_lean, is_lean

_KEYS = 4
"""v, id, label, at."""


@dataclass(frozen=True, slots=True)
class LabelBatch:
    """The good labels of a batch, one entry each, and the errors.

    labels is the index in the label set; positions are those of the messages in the batch.
    """

    ids: list[str]
    labels: list[int]
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

    def __init__(self, labels: Sequence[str], *, limit: int = MAX_BYTES) -> None:
        super().__init__(Label, limit)
        self._index = {label: i for i, label in enumerate(labels)}

    def read(self, values: Values) -> LabelBatch:
        """Read a batch; never raises on bad input."""
        records, positions, errors = self._sift(values)
        index = self._index
        return LabelBatch(
            ids=[record.id for record in records],
            labels=[index[record.label] for record in records],
            at=[record.at for record in records],
            positions=positions,
            errors=errors,
        )

    def _unproven(self, records: list[Label], values: list[bytes]) -> list[int]:
        if are_lean(values, _KEYS * len(values)):
            return []
        pairs = zip(records, values, strict=True)
        return [k for k, (r, value) in enumerate(pairs) if not is_lean(value, _KEYS, r.id)]

    def _all_good(self, records: list[Label]) -> bool:
        known = {record.label for record in records} <= self._index.keys()
        return known and ids_good(records)

    def _record_fault(self, record: Label) -> RecordError | None:
        if record.label not in self._index:
            return RecordError(Reason.UNKNOWN_LABEL, "label: expected a label of the settings")
        return id_fault(record)
