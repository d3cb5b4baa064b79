"""Maps the contexts of a contextual ensemble learner to the cubes they lie in."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.local_learner import readable
from agents.sealing import context_opener
from learners.join import Context, Event
from learners.payloads import ContextPayload
from schemas.deadletters import digest
from schemas.reading import Check
from schemas.rows import RowReader
from settings.model import Settings
from streams.kafka.batch import Batch


class ContextReader:
    """Maps contexts to the ensemble learner's cubes."""

    def __init__(self, settings: Settings, home: Check) -> None:
        context = settings.ensemble.context
        assert context is not None  # noqa: S101 - made only for settings with a context
        self._partition = context.partition()
        self._reader = RowReader(readable(self._partition.space), [home], context_opener(settings))

    def read(self, batch: Batch) -> tuple[list[Event], Sequence[Any]]:
        """Return the contexts of a batch, and the errors."""
        read = self._reader.read(batch.values)
        if not read.ids:
            return [], read.errors
        cubes = self._partition.context_cells(np.array(read.rows, np.float64)).tolist()
        values, offsets, times = batch.values, batch.offsets, batch.timestamps
        events: list[Event] = [
            # The values themselves are not kept, only their cube and what identifies the record.
            Context(times[i], name, ContextPayload(cube, offsets[i], digest(values[i] or b"")))
            for i, name, cube in zip(read.positions, read.ids, cubes, strict=True)
        ]
        return events, read.errors
