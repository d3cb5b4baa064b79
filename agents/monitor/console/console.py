"""What the pages are fed with: one look at the system at a time, however many pages are open.

look     the watch's overview, the newest diagnoses, the reasons of dead letters
sample   a point of the curves, also while nobody looks: a page opened late sees them whole
frame    all of it as one event, made once for all pages
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from agents.monitor.console.activity import Pulse
from agents.monitor.console.event_stream import Feed, event
from agents.monitor.console.history import History, point
from agents.monitor.console.learner_reader import Details
from agents.monitor.console.newest_records import Tail
from agents.monitor.console.snapshot import about, snapshot
from agents.monitor.overview import Overview
from agents.monitor.watch import Watch
from settings.errors import HbError
from settings.model import Settings
from streams.clock import wall
from streams.engine.tasks.task import TaskStatus
from streams.kafka.topics import Topics

_PATIENCE = 3.0
_FRESH = 0.5
_SAMPLE_EVERY = 0.25
_FEW_LABELS = 1_000
"""So far the curves move fast, and are sampled more often; there is little load as yet."""
_REPEATED = 8
"""Points that come with every frame: a page may have missed some frames."""


class Console:
    """The console of one worker."""

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        statuses: Callable[[], Sequence[TaskStatus]] = lambda: (),
    ) -> None:
        self._settings, self._watch, self._statuses = settings, watch, statuses
        watch.told.append(self._take)
        self._about = about(settings, uuid4().hex[:8], wall(), version("hedged-bandits"))
        self._pulse = Pulse(Topics.of(settings))
        self._tail = Tail(settings)
        self._looking: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._trouble: str | None = None
        self._resting = True
        self.patience = _PATIENCE
        self.history = History()
        self.details = Details(settings)
        self.feed = Feed(self._frame, idle=self._rest)

    def start(self) -> None:
        """Begin to sample the curves."""
        self._sampler = asyncio.create_task(self._sample(), name="console curves")

    async def close(self) -> None:
        """End the pages' streams and let go of the broker."""
        await self.feed.close()
        await _end(self._sampler)
        await self._rest()

    def hello(self) -> bytes:
        """Return what a page is told first: who speaks, and the curves so far."""
        return event("hello", {**self._about, "history": self.history.points})

    # Looking.

    def _take(self, found: Overview) -> None:
        self._pulse.take(found, time.monotonic())
        self.history.add(point(self._settings, found.board, _millis(found)))

    async def _sample(self) -> None:
        """Look more often than the watch does by itself, as long as the curves move fast."""
        while True:
            found = self._watch.latest
            if found is not None and found.board.labelled < _FEW_LABELS:
                await self._try(self._overview)
            await asyncio.sleep(_SAMPLE_EVERY)

    async def _overview(self) -> None:
        await self._watch.refresh(_SAMPLE_EVERY / 2)

    async def _look(self) -> None:
        await self._tail.look(await self._watch.refresh(_FRESH), self._watch.own)

    async def _try(self, look: Callable[[], Awaitable[None]]) -> None:
        """Look; what keeps us from it is kept to be shown."""
        try:
            await look()
            self._trouble = None
        except HbError as error:
            self._trouble = str(error)

    # Telling.

    async def _frame(self) -> bytes:
        """Look, for a few seconds at most: a page must hear that we live, whatever the broker does.

        A look that takes longer goes on, and is asked for again by the next frame. The first frame
        does not wait for one if the watch knows something: a page shall not open empty.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._try(self._look), name="console look")
        opening = self._resting and self._watch.latest is not None
        self._resting = False
        done, _ = await asyncio.wait([self._looking], timeout=0 if opening else self.patience)
        for look in done:
            look.result()
        return event("snapshot", self._shown(in_time=bool(done) or opening))

    def _shown(self, in_time: bool) -> dict[str, Any]:
        slow = None if in_time else "the broker takes long to answer"
        found = self._watch.latest
        shown: dict[str, Any] = {
            "worker": self._about["worker"],
            "now": wall(),
            "at": None if found is None else _millis(found),
            "trouble": self._trouble or slow,
            "points": self.history.points[-_REPEATED:],
        }
        if found is not None:
            shown |= snapshot(self._settings, found, self._pulse, self._tail, self._statuses())
        return shown

    async def _rest(self) -> None:
        self._resting = True
        await _end(self._looking)
        self.details.forget()
        await self._tail.close()


def _millis(found: Overview) -> int:
    return int(found.at * 1000)


async def _end(task: "asyncio.Task[None] | None") -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])
