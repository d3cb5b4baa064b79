"""The schema of batch topics: an event's value is a whole batch; decoding is its agent's work."""

from typing import Any

import faust

from streams.kafka.batch import Batch


class BatchSchema(faust.Schema[None, Batch]):
    """Hands batches through as the transport made them."""

    def loads_key(self, app: Any, message: Any, **_: Any) -> None:
        """Return nothing: the keys are inside the batch."""

    def loads_value(self, app: Any, message: Any, **_: Any) -> Batch:  # noqa: ARG002  # as Faust
        """Return the batch."""
        batch: Batch = message.value
        return batch
