"""What a task has fetched and not processed yet, handed out in time order.

A processor's clock is the time of the records it has seen. A task that catches up on a backlog may
have far more of one topic than of another; processed as they arrive, the first would move the clock
ahead of unread records of the second, and waits would end too early. So:

1. The topic with the oldest record goes first, but a leader, if there is one, before the others.
2. A topic stays within `slack` of what others may still bring: their next record, or, if that is on
   the broker and not here yet, their last one.
3. No topic overtakes a leader. While the leader moves (it brought something within `patience`) it
   is waited for even if nothing is left to read: its writers may be catching up themselves.

Rules 2 and 3 never make a record younger than `patience` wait, except for records that are already
here: in a stream that is up to date, nothing waits for records that may never come.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from streams.engine.config import Pace
from streams.kafka.batch import Batch

_NEVER = 1 << 62


@dataclass(slots=True)
class _Shelf:
    """The pieces of one topic, and what is known about it. `came` uses the monotonic clock."""

    expected: int
    came: float
    pieces: deque[Batch] = field(default_factory=deque)
    nbytes: int = 0
    newest: int = 0


class Inbox:
    """Batches of the inputs of one task. Times are arguments, so that tests can set them."""

    def __init__(
        self,
        positions: dict[str, int],
        pace: Pace,
        end_of: Callable[[str], int | None],
        *,
        leader: str | None = None,
        now: float = 0.0,
    ) -> None:
        self._pace, self._end_of, self._leader = pace, end_of, leader
        self._shelves = {topic: _Shelf(at, now) for topic, at in positions.items()}

    @property
    def expected(self) -> dict[str, int]:
        """Return, per topic, where the next batch has to start."""
        return {topic: shelf.expected for topic, shelf in self._shelves.items()}

    @property
    def nbytes(self) -> int:
        """Return how many bytes are here."""
        return sum(shelf.nbytes for shelf in self._shelves.values())

    @property
    def records(self) -> int:
        """Return how many records are here."""
        return sum(len(piece) for shelf in self._shelves.values() for piece in shelf.pieces)

    def __len__(self) -> int:
        return sum(len(shelf.pieces) for shelf in self._shelves.values())

    def has_room(self, topic: str, share: float = 1.0) -> bool:
        """Tell whether there is room for more of a topic; `share` limits it to part of the room."""
        return self._shelves[topic].nbytes < share * self._pace.room

    def put(self, batch: Batch, now: float) -> bool:
        """Accept a batch; False if it was refused because it does not follow the previous one."""
        shelf = self._shelves[batch.topic]
        if batch.base != shelf.expected:
            return False
        shelf.expected = batch.next
        shelf.nbytes += batch.nbytes
        # Small waiting batches are merged: each costs its agent about as much as a larger one.
        if shelf.pieces and len(shelf.pieces[-1]) + len(batch) <= self._pace.chunk:
            shelf.pieces[-1] = shelf.pieces[-1].join(batch)
        else:
            shelf.pieces.extend(batch.split(self._pace.chunk))
        if len(batch):
            shelf.came = now
        return True

    def skip(self, topic: str, offset: int) -> None:
        """Expect a topic to continue at a later offset: what came before is gone."""
        self._shelves[topic].expected = max(self._shelves[topic].expected, offset)

    def clear(self, positions: dict[str, int]) -> None:
        """Drop everything, and continue from these positions."""
        for topic, shelf in self._shelves.items():
            shelf.pieces.clear()
            shelf.nbytes, shelf.expected = 0, positions[topic]

    def moving(self, now: float, wall: int) -> bool:
        """Tell whether the stream is catching up: old records have just come."""
        shelves = self._shelves.values()
        live = max(shelf.newest for shelf in shelves) >= self._live_since(wall)
        return not live and any(self._fresh(shelf, now) for shelf in shelves)

    def take(self, now: float, wall: int) -> Batch | None:
        """Return the next piece to process, None if there is none or it has to wait.

        `now` is the monotonic clock in seconds, `wall` the time in milliseconds since 1970.
        """
        for topic in self._order():
            shelf = self._shelves[topic]
            piece = shelf.pieces[0]
            ready = _ready(piece, self._bound(topic, now, wall))
            if ready is None:
                continue
            head, left = piece.cut(ready)
            if left is None:
                shelf.pieces.popleft()
            else:
                shelf.pieces[0] = left
            shelf.nbytes -= head.nbytes
            if len(head):
                shelf.newest = max(shelf.newest, head.timestamps[-1])
            return head
        return None

    def _order(self) -> Sequence[str]:
        """Return the topics that have something, in the order in which they go."""
        full = [topic for topic, shelf in self._shelves.items() if shelf.pieces]
        return sorted(full, key=lambda topic: (topic != self._leader, self._head(topic)))

    def _head(self, topic: str) -> int:
        """Return the time of the next record of a topic."""
        for piece in self._shelves[topic].pieces:
            if len(piece):
                return piece.timestamps[0]
        return 0  # only a step of the position

    def _bound(self, topic: str, now: float, wall: int) -> int:
        """Return the time up to which a topic's records may go."""
        live = self._head(topic) >= self._live_since(wall)
        return min(self._limits(topic, now, live), default=_NEVER)

    def _limits(self, topic: str, now: float, live: bool) -> Iterator[int]:
        for name, shelf in self._shelves.items():
            slack = 0 if name == self._leader else self._pace.slack
            if name == topic:
                continue
            if shelf.pieces:
                yield self._head(name) + slack
            elif not live and self._may_bring(name, now):
                yield shelf.newest + slack

    def _may_bring(self, topic: str, now: float) -> bool:
        """Tell whether a topic with nothing here may still bring older records."""
        shelf, end = self._shelves[topic], self._end_of(topic)
        behind = end is None or shelf.expected < end
        return behind or (topic == self._leader and self._fresh(shelf, now))

    def _fresh(self, shelf: _Shelf, now: float) -> bool:
        return now - shelf.came < self._pace.patience

    def _live_since(self, wall: int) -> int:
        return wall - int(self._pace.patience * 1000)


def _ready(piece: Batch, bound: int) -> int | None:
    """Return how many records of a piece may go, None if it has to wait."""
    if not len(piece) or max(piece.timestamps) <= bound:
        return len(piece)
    return next(k for k, at in enumerate(piece.timestamps) if at > bound) or None
