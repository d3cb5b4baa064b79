"""What tasks report to observers: called as soon as something is certain, never before."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streams.engine.measurements import Notes
from streams.engine.state.table import Change

Rows = Callable[[], Iterable[tuple[bytes, bytes]]]
"""Returns stored keys and values."""


@dataclass(frozen=True, slots=True)
class At:
    """How far a task's state reaches, by topic.

    positions  where each input is read next
    offsets    where each changelog continues after it
    """

    positions: Mapping[str, int] = field(default_factory=dict)
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opened:
    """A task that has opened, after this many seconds and changelog records.

    `rows` returns what is stored, by table; it may be called during this report, not later.
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
    end of the commit. `changes` are the new values by table, `notes` what the processor wants
    measured.
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
    """Receives what tasks report; this one ignores it."""

    def opened(self, opened: Opened) -> None:
        """A task has opened."""

    def committed(self, commit: Committed) -> None:
        """A transaction was committed."""

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:
        """A task was closed by an error; it opens again unless the error is final."""

    def closed(self, agent: str, partition: int) -> None:
        """A task is no longer open, for whatever reason: another worker may continue it."""


class Observers(Observer):
    """Forwards everything to several observers, in their order."""

    def __init__(self, *listeners: Observer) -> None:
        self.listeners = list(listeners)

    def opened(self, opened: Opened) -> None:
        """Forward to all observers."""
        for listener in self.listeners:
            listener.opened(opened)

    def committed(self, commit: Committed) -> None:
        """Forward to all observers."""
        for listener in self.listeners:
            listener.committed(commit)

    def interrupted(self, agent: str, partition: int, reason: str, final: bool) -> None:
        """Forward to all observers."""
        for listener in self.listeners:
            listener.interrupted(agent, partition, reason, final)

    def closed(self, agent: str, partition: int) -> None:
        """Forward to all observers."""
        for listener in self.listeners:
            listener.closed(agent, partition)


SILENT = Observer()
