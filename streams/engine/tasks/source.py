"""Where a task's batches come from, as far as a task needs to know."""

from collections.abc import Mapping
from typing import Protocol


class Source(Protocol):
    """Delivers batches to tasks; lives longer than any of them."""

    async def rewind(self, partition: int, positions: Mapping[str, int]) -> None:
        """Go on reading partition `partition` of each topic at the given offset."""

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the end of what is committed in a partition as last heard, None if not heard."""

    async def confirmed(self) -> None:
        """Return when it is certain, from now on, that this worker holds its partitions.

        The coordinator of the consumer group has to say so in the group's present generation.
        """

    def wake(self) -> None:
        """Take note that a task has room again."""
