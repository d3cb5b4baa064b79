"""What tasks tell whoever measures: called at the moment something is certain, never before."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.tasks.notes import Notes


@dataclass(frozen=True, slots=True)
class Committed:
    """One transaction that is committed and stored; times in seconds.

    `seconds` is the transaction itself, `waited` the time from the first record's processing to the
    end of the commit. `notes` are what the processor wants to have measured.
    """

    agent: str
    partition: int
    records: int
    outputs: int
    changes: int
    dead: Mapping[str, int]
    seconds: float
    waited: float
    notes: Notes = field(default_factory=Notes)


class Observer:
    """Hears what tasks do; this one does nothing with it."""

    def opened(self, agent: str, partition: int, seconds: float, restored: int) -> None:
        """Hear that a task is open, and how many changelog records it read for that."""

    def committed(self, done: Committed) -> None:
        """Hear of a commit."""

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:
        """Hear that a task was closed by an error; it opens again unless that is final."""


SILENT = Observer()
