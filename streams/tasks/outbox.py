"""Collects what a transaction will send, as ready record batches.

Records are encoded when they are emitted, while the last transaction is still being committed, so
that sending is only a matter of handing buffers to the sockets.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from schemas.deadletters import headers as dead_headers
from schemas.deadletters import refused
from schemas.errors import RecordError
from streams.tasks.batch import Batch, Headers

_MAX_RECORD = 900_000
"""Brokers refuse record batches above a megabyte unless told otherwise."""


class Outbox:
    """Outputs of one transaction, by topic and partition.

    `create` makes an empty record batch of the producer. Outputs go to the task's own partition
    number unless another is named, because one partition follows the patient.
    """

    def __init__(self, create: Callable[[], Any], partition: int, deadletters: str) -> None:
        self._create = create
        self._partition = partition
        self._deadletters = deadletters
        self.batches: dict[tuple[str, int], list[Any]] = {}
        self.records = 0
        self.dead_reasons: dict[str, int] = {}

    def emit(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Send one record; `timestamp` in milliseconds."""
        self._append(topic, partition, ((timestamp, key, value),), list(headers))

    def emit_many(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        *,
        partition: int | None = None,
    ) -> None:
        """Send records in their order."""
        self._append(topic, partition, zip(timestamps, keys, values, strict=True), [])

    def dead(self, batch: Batch, index: int, error: RecordError) -> None:
        """Send a record that cannot be used to the dead letters, as it came, and say why."""
        self.dead_record(
            error,
            batch.topic,
            batch.offsets[index],
            at=batch.timestamps[index],
            key=batch.keys[index],
            value=batch.values[index],
            headers=batch.headers.get(index, ()),
        )

    def dead_record(
        self,
        error: RecordError,
        topic: str,
        offset: int,
        *,
        at: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        """Send a record of this partition that was read earlier to the dead letters."""
        reason = str(error.reason)
        self.dead_reasons[reason] = self.dead_reasons.get(reason, 0) + 1
        letter = refused(error, topic=topic, partition=self._partition, offset=offset, at=at)
        cut = value is not None and len(value) > _MAX_RECORD
        kept = value[:_MAX_RECORD] if cut and value is not None else value
        marks = [*dead_headers(letter), *([("hb-cut", b"1")] if cut else []), *headers]
        self._append(self._deadletters, None, ((at, key, kept),), list(marks))

    def _append(
        self,
        topic: str,
        partition: int | None,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        place = (topic, self._partition if partition is None else partition)
        batches = self.batches.setdefault(place, [])
        builder = batches[-1] if batches else self._add(batches)
        # The builder's own wrapper costs as much again as the encoding, so it is passed by.
        append, count = builder._builder.append, builder._relative_offset
        before = count
        for timestamp, key, value in records:
            if append(count, timestamp, key, value, headers) is None:
                self._close(builder, count)
                self.records += count - before
                builder = self._add(batches)
                append, count, before = builder._builder.append, 0, 0
                append(count, timestamp, key, value, headers)
            count += 1
        builder._relative_offset = count
        self.records += count - before

    def _add(self, batches: list[Any]) -> Any:
        builder = self._create()
        batches.append(builder)
        return builder

    @staticmethod
    def _close(builder: Any, count: int) -> None:
        builder._relative_offset = count
        builder.close()
