"""When the broker last answered a client: the proof that its connections still work.

aiokafka retries on its own and does not report for how long it has been retrying in vain. All
requests of a client pass through its `send`, so that is where requests and answers are recorded.
tests/streams/test_upstream.py pins this.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_GROUP = ("Heartbeat", "JoinGroup", "SyncGroup")
_MAY_TAKE_LONG = ("JoinGroup", "SyncGroup")
"""The coordinator answers these once all members have joined, which may take minutes."""
_FETCH = "Fetch"
_GIVEN_UP = 2.0
"""Seconds after which a failed request that was not repeated no longer counts: by then the client
is asking another node."""


@dataclass(slots=True)
class _Question:
    """Fetches of one node since its last answer: when first sent, when last, how many are open."""

    first: float
    last: float
    open: int = 0


class Answers:
    """Records the answers that one aiokafka client gets."""

    def __init__(self, client: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.coordinator = clock()
        """When the group's coordinator last answered."""
        self._unanswered: float | None = None
        self._fetches: dict[Any, _Question] = {}
        self._send = client.send
        client.send = self._noted

    @classmethod
    def of(cls, consumer: Any) -> "Answers":
        """Note the answers that a consumer gets."""
        return cls(consumer._client)

    async def _noted(self, node: Any, request: Any, **options: Any) -> Any:
        kind = type(request).__name__.partition("Request")[0]
        if kind not in _MAY_TAKE_LONG and self._unanswered is None:
            self._unanswered = self._clock()
        question = self._asked(node) if kind == _FETCH else None
        try:
            answer = await self._send(node, request, **options)
        finally:
            if question is not None:
                question.open -= 1
        self._unanswered = None
        if question is not None:
            self._fetches.pop(node, None)
        if kind in _GROUP:
            self.coordinator = self._clock()
        return answer

    def _asked(self, node: Any) -> _Question:
        now = self._clock()
        question = self._fetches.setdefault(node, _Question(now, now))
        if not question.open and now - question.last > _GIVEN_UP:
            question.first = now
        question.last, question.open = now, question.open + 1
        return question

    @property
    def silent_for(self) -> float:
        """Return for how many seconds no request was answered; 0 if there was none."""
        return 0.0 if self._unanswered is None else self._clock() - self._unanswered

    @property
    def unfetched_for(self) -> float:
        """Return for how many seconds the slowest node has left fetches unanswered."""
        now = self._clock()
        waits = [
            now - question.first
            for question in self._fetches.values()
            if question.open or now - question.last <= _GIVEN_UP
        ]
        return max(waits, default=0.0)
