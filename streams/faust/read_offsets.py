"""Faust's record of what it has read, without batch topics."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any


class ReadOffsets(defaultdict[Any, int | None]):
    """The offsets that Faust has read; it drops records that it believes to be old.

    Batch topics are kept out of it: otherwise a seek back while a batch is in flight would make
    Faust drop the batches after the seek, and no further record might come to reveal the gap.
    """

    def __init__(self, batch_topics: Collection[str]) -> None:
        super().__init__(lambda: None)
        self._batch_topics = batch_topics

    def __setitem__(self, partition: Any, offset: int | None) -> None:
        if partition.topic not in self._batch_topics:
            super().__setitem__(partition, offset)

    def update(self, *mappings: Any, **named: Any) -> None:
        """Set several, by the same rule."""
        for partition, offset in dict(*mappings, **named).items():
            self[partition] = offset
