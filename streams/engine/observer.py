"""What tasks tell whoever measures: called at the moment something is certain, never before."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streams.engine.measurements import Notes
from streams.engine.state.table import Change

Rows = Callable[[], Iterable[tuple[bytes, bytes]]]
"""Gives stored keys and values."""


@dataclass(frozen=True, slots=True)
class At:
    """How far a task's state reaches, by topic.

    positions  where each input is read next
    offsets    where each changelog goes on after it
    """

    positions: Mapping[str, int] = field(default_factory=dict)
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opened:
    """A task that is open, after so many seconds and changelog records.

    `rows` gives what is stored, by table; it may be asked while this is told, not later.
    """

    agent: str
    partition: int
    seconds: float
    restored: int
    at: At = field(default_factory=At)
    rows: Mapping[str, Rows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """One transaction that is committed and stored; times in seconds.

    `seconds` is the transaction itself, `waited` the time from the first record's processing to the
    end of the commit. `changes` are the new values by table, `notes` what the processor wants to
    have measured.
    """

    agent: str
    partition: int
    records: int
    outputs: int
    changes: Mapping[str, Sequence[Change]]
    dead: Mapping[str, int]
    seconds: float
    waited: float
    notes: Notes = field(default_factory=Notes)
    at: At = field(default_factory=At)


class Observer:
    """Hears what tasks do; this one does nothing with it."""

    def opened(self, opened: Opened) -> None:
        """Hear that a task is open."""

    def committed(self, done: Committed) -> None:
        """Hear of a commit."""

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:
        """Hear that a task was closed by an error; it opens again unless that is final."""

    def closed(self, agent: str, partition: int) -> None:
        """Hear that a task is not open any more, for whatever reason: others may go on with it."""


class Observers(Observer):
    """Tells all who listen, in their order."""

    def __init__(self, *listeners: Observer) -> None:
        self.listeners = list(listeners)

    def opened(self, opened: Opened) -> None:
        """Tell them."""
        for each in self.listeners:
            each.opened(opened)

    def committed(self, done: Committed) -> None:
        """Tell them."""
        for each in self.listeners:
            each.committed(done)

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:
        """Tell them."""
        for each in self.listeners:
            each.interrupted(agent, partition, reason, final)

    def closed(self, agent: str, partition: int) -> None:
        """Tell them."""
        for each in self.listeners:
            each.closed(agent, partition)


SILENT = Observer()
