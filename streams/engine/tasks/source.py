"""Where a task's batches come from: what a task needs to know about it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from streams.engine.health import Symptom


class Source(Protocol):
    """Delivers batches to tasks; lives longer than any of them."""

    async def rewind(self, partition: int, positions: Mapping[str, int]) -> None:
        """Continue reading partition `partition` of each topic at the given offset."""

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the last known end of committed records in a partition, None if unknown."""

    def written_to(self, topic: str, partition: int) -> int | None:
        """Return the last known end of all records in a partition, decided or not."""

    async def confirmed(self) -> None:
        """Return once it is confirmed, after this call, that this worker holds its partitions.

        The coordinator of the consumer group has to confirm it in the group's current generation.
        """

    def symptoms(self) -> Sequence[Symptom]:
        """Return what prevents batches from coming."""

    @property
    def still_for(self) -> float:
        """Return how many seconds ago batches were last requested; 0 while none should be."""

    def wake(self) -> None:
        """Note that a task has room again."""
