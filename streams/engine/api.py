"""What a user of the engine writes: a processor per partition, and a description of its agent."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.engine.changelogs.signing import Signer
from streams.engine.outbox import Outbox
from streams.engine.state.table import Table
from streams.kafka.batch import Batch


class ProcessingError(Exception):
    """The processor raised: a bug, since bad records go to the dead letters."""


class Processor(ABC):
    """Turns batches into outputs and state changes; knows nothing of transactions.

    It may be discarded at any moment and rebuilt from the last committed state, so it keeps
    nothing outside its tables that it cannot compute from them. It must not do I/O.
    """

    @abstractmethod
    def process(self, batch: Batch, out: Outbox) -> None:
        """Handle the records of a batch in their order.

        A record that cannot be used goes to `out.dead`. An exception is a bug: nothing of the batch
        is committed, and the task stops after a few tries.
        """

    def save(self) -> None:  # noqa: B027  # most processors write their tables as they go
        """Write what changed to the tables; called once before each commit.

        This way a value that changes many times between two commits is encoded once.
        """

    def tick(self, now: int, out: Outbox) -> None:  # noqa: B027  # most processors have no clock
        """Act on time passing, `now` in milliseconds; called only when no input is left to read."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a processor is made from."""

    agent: str
    partition: int
    tables: Mapping[str, Any]
    """The task's own tables by name, loaded."""
    others: Any = None
    """What the other partitions counted (`streams.engine.changelogs.replica.Others`), if tables
    are shared.
    """


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent: its input topics, its tables, and how to make its processor for a partition.

    All inputs have the same number of partitions; partition p of all of them is one task.
    """

    name: str
    inputs: tuple[str, ...]
    tables: Callable[[], Sequence[Table]]
    processor: Callable[[TaskContext], Processor]
    follow: bool = False
    """Decide with the sums over all partitions: follow the shared tables of the others."""
    meaning: Mapping[str, str] = field(default_factory=dict)
    """A digest, by settings key, of what stored rows and records in flight depend on: state that
    was written under others is refused (see `streams.engine.changelogs.origin`)."""
    deadletters: str | None = None
    """The topic for what it cannot use; without one, that of the application."""
    signer: Callable[[], Signer | None] = lambda: None
    """What proves that its changelogs were written by its own workers; asked when a task opens."""
    leader: str | None = None
    """The input that the records of the others refer to; during a catch-up, the others do not
    overtake it (see `streams.engine.tasks.inbox`)."""
