"""Collects what a transaction will send, as finished record batches.

Records are encoded when they are emitted, while the last transaction is still being committed, so
that sending is only a matter of handing buffers to the sockets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from schemas.deadletters import PREFIX, Digest, Message, fitted, headers, refused
from schemas.errors import RecordError
from streams.clock import wall
from streams.engine.errors import RecordTooLargeError
from streams.engine.measurements import Notes
from streams.kafka.batch import Batch
from streams.kafka.client.builders import Record, fill, size_of

LARGEST = 1_000_000
"""Bytes that one output may take; a broker's default limit is slightly higher."""


class Outbox:
    """Outputs of one transaction, by topic and partition.

    `create` makes an empty record batch of the producer. Outputs go to the task's own partition
    number, because a patient stays in one partition. A record of more than `largest` bytes raises
    RecordTooLargeError.
    """

    def __init__(
        self,
        create: Callable[[], Any],
        partition: int,
        deadletters: str,
        largest: int = LARGEST,
    ) -> None:
        self._create = create
        self._largest = largest
        self._partition = partition
        self._deadletters = deadletters
        self.batches: dict[tuple[str, int], list[Any]] = {}
        self.records = 0
        self.urgent = False
        """Whether any of its outputs is urgent."""
        self.dead_reasons: dict[str, int] = {}
        self.notes = Notes()
        """What to measure once this is committed."""

    def emit_many(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        *,
        urgent: bool = True,
        headers: Mapping[int, Sequence[tuple[str, bytes | None]]] | None = None,
    ) -> None:
        """Send records in order; if not `urgent`, they may wait a little to share a transaction.

        `headers` are those of the few records that have any, by their index.
        """
        self.urgent |= urgent
        records = zip(timestamps, keys, values, strict=True)
        if not headers:
            self._append(topic, records, [])
            return
        for index, record in enumerate(records):
            self._append(topic, (record,), headers.get(index, []))

    def dead(self, batch: Batch, index: int, error: RecordError) -> None:
        """Send a record that cannot be used to the dead letters, and say why.

        It is sent as it came or, if it is too large for that, with a digest in place of its value.
        """
        # If the record was refused before and tried again, the earlier reason no longer applies.
        own = [pair for pair in batch.headers.get(index, ()) if not pair[0].startswith(PREFIX)]
        self.dead_record(
            error,
            batch.topic,
            batch.offsets[index],
            key=batch.keys[index],
            value=batch.values[index],
            extra=own,
        )

    def dead_record(
        self,
        error: RecordError,
        topic: str,
        offset: int,
        *,
        key: bytes | None,
        value: bytes | Digest | None,
        extra: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Send a record of this partition that was read, perhaps long ago, to the dead letters.

        It gets the time of its refusal: with its own time, retention might remove it at once.
        """
        reason = error.reason.value
        self.dead_reasons[reason] = self.dead_reasons.get(reason, 0) + 1
        now = wall()
        key, content, extra = fitted(Message(key, value, extra))
        letter = refused(
            error, topic=topic, partition=self._partition, offset=offset, at=now, value=content
        )
        record = (now, key, letter.value)
        self._append(self._deadletters, (record,), [*headers(letter), *extra])

    def _append(
        self,
        topic: str,
        records: Iterable[Record],
        extra: Sequence[tuple[str, bytes | None]],
    ) -> None:
        batches = self.batches.setdefault((topic, self._partition), [])
        builder = batches[-1] if batches else self._add(batches)
        remaining = iter(records)
        appended, left = fill(builder, remaining, extra)
        while left is not None:
            self._check_size(builder, topic)
            builder.close()
            self.records += appended
            builder = self._add(batches)
            appended, left = fill(builder, chain((left,), remaining), extra)
        self._check_size(builder, topic)
        self.records += appended

    def _check_size(self, builder: Any, topic: str) -> None:
        """Refuse a record too large for any request; it is alone in its batch."""
        size = size_of(builder)
        if size > self._largest:
            raise RecordTooLargeError(topic, size, self._largest)

    def _add(self, batches: list[Any]) -> Any:
        builder = self._create()
        batches.append(builder)
        return builder
