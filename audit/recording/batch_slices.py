"""Pieces of a batch, cut at an offset."""

from dataclasses import replace

from streams.kafka.batch import Batch


def upto(batch: Batch, end: int) -> Batch:
    """Return the part of a batch before offset `end`."""
    if batch.next <= end:
        return batch
    return replace(_piece(batch, 0, sum(offset < end for offset in batch.offsets)), next=end)


def since(batch: Batch, start: int) -> Batch:
    """Return the part of a batch from offset `start` on."""
    first = sum(offset < start for offset in batch.offsets)
    return replace(_piece(batch, first, len(batch)), base=start)


def _piece(batch: Batch, first: int, last: int) -> Batch:
    return replace(
        batch,
        offsets=batch.offsets[first:last],
        timestamps=batch.timestamps[first:last],
        keys=batch.keys[first:last],
        values=batch.values[first:last],
        headers={i - first: pairs for i, pairs in batch.headers.items() if first <= i < last},
    )
