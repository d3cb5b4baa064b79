"""Erased patients: agents remember nothing of them but a digest of the id, which they keep forever.

An erasure names its patient by that digest only, so that erasing a patient writes the id nowhere.
It goes to the ensemble learner, which closes the patient's entry and passes the erasure on with the
feedback to every local learner; so each task drops what it keeps in the order of its own inputs,
and only the task itself writes its changelog. What comes later about the patient is dropped.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from learners.join import Event
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Erasure
from schemas.writing import encode
from streams.engine.state.entries import EntriesTable
from streams.kafka.batch import Batch

TABLE = "erased"
PASSED_ON = b"\0erased"
"""The key of erasures among feedback: no id holds a control character."""
_SIZE = 16


def digest_of(name: str) -> str:
    """Return what stands for the id of an erased patient.

    >>> digest_of("a17")
    '27ddb7a63f4ca2da098b172fc60de1c7'
    """
    return sha256(b"hb erased\0" + name.encode()).digest()[:_SIZE].hex()


def erasure(digest: str, at: int) -> bytes:
    """Return an erasure as it travels."""
    return encode(Erasure(digest, at))


class Erased:
    """The erased patients of one partition of an agent, by digest; each with what was erased."""

    def __init__(self, table: EntriesTable) -> None:
        self._table = table
        self._read = Reader(Erasure).read

    def __contains__(self, name: str) -> bool:
        # Hashing costs something for each record, and in most ensembles no patient was erased.
        return len(self._table) > 0 and digest_of(name).encode() in self._table

    def __len__(self) -> int:
        return len(self._table)

    def without(self, events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
        """Return the events of others, and those of erased patients."""
        if not len(self):
            return list(events), []
        erased = [event.id in self for event in events]
        return (
            [event for event, is_erased in zip(events, erased, strict=True) if not is_erased],
            [event for event, is_erased in zip(events, erased, strict=True) if is_erased],
        )

    def read(
        self, batch: Batch, positions: Sequence[int]
    ) -> tuple[list[str], list[tuple[int, RecordError]]]:
        """Return the digests of patients to erase who are not erased yet, and the errors."""
        read = self._read([batch.values[i] for i in positions])
        digests = dict.fromkeys(record.id for record in read.records)
        new = [digest for digest in digests if digest.encode() not in self._table]
        return new, [(positions[i], error) for i, error in read.errors]

    @staticmethod
    def named(digests: Iterable[str], ids: Iterable[str]) -> dict[str, str]:
        """Return the id behind each of these digests, where it is among `ids`."""
        digest_set = set(digests)
        return {digest: name for name in ids if (digest := digest_of(name)) in digest_set}

    def note(self, digest: str, mark: int) -> None:
        """Remember that a patient is erased, and a note whose meaning is up to the agent."""
        self._table.put(digest.encode(), bytes([mark]))
