"""Where a task's batches come from, as far as a task needs to know."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from streams.engine.health import Symptom


class Source(Protocol):
    """Delivers batches to tasks; lives longer than any of them."""

    async def rewind(self, partition: int, positions: Mapping[str, int]) -> None:
        """Go on reading partition `partition` of each topic at the given offset."""

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the end of what is committed in a partition as last heard, None if not heard."""

    def written_to(self, topic: str, partition: int) -> int | None:
        """Return the end of all that is written, as last heard, decided or not."""

    async def confirmed(self) -> None:
        """Return when it is certain, from now on, that this worker holds its partitions.

        The coordinator of the consumer group has to say so in the group's present generation.
        """

    def symptoms(self) -> Sequence[Symptom]:
        """Return what keeps batches from coming."""

    @property
    def still_for(self) -> float:
        """Return for how many seconds nobody has asked for batches; 0 while nobody should."""

    def wake(self) -> None:
        """Take note that a task has room again."""
