"""The data behind the pages: read once, however many pages are open.

read     the watch's overview, the newest diagnoses, the reasons of dead letters
sample   a point of the curves, even with no page open, so that a page opened late has them all
frame    everything as one event, built once for all pages
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from agents.monitor.console.activity import Activity
from agents.monitor.console.event_stream import EventStream, event
from agents.monitor.console.history import History, point
from agents.monitor.console.learner_reader import LearnerReader
from agents.monitor.console.newest_records import NewestRecords
from agents.monitor.console.snapshot import about, snapshot
from agents.monitor.overview import Overview
from agents.monitor.system_health import system_verdict
from agents.monitor.watch import Watch
from settings.errors import HbError
from settings.model import Settings
from streams.clock import wall
from streams.engine.health import Cause, Symptom
from streams.engine.tasks.task import TaskStatus
from streams.kafka.connection import NotAllowedError
from streams.kafka.topics import Topics

_PATIENCE = 3.0
_FRESH = 0.5
_SAMPLE_EVERY = 0.25
_FEW_LABELS = 1_000
"""Until then the curves move fast and are sampled more often; there is little load yet."""
_SLOW = Symptom(Cause.BROKER_SLOW, "the broker is slow to answer")
_REPEATED = 8
"""Points repeated in every frame, because a page may have missed some frames."""


class Console:
    """The console of one worker."""

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        statuses: Callable[[], Sequence[TaskStatus]] = lambda: (),
        symptoms: Callable[[], Sequence[Symptom]] = lambda: (),
    ) -> None:
        self._settings, self._watch, self._statuses = settings, watch, statuses
        self._symptoms = symptoms
        watch.told.append(self._take)
        self._about = about(settings, uuid4().hex[:8], wall(), version("hedged-bandits"))
        self._activity = Activity(Topics.of(settings))
        self._newest = NewestRecords(settings)
        self._reading: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._error: HbError | None = None
        self._reads_records = True
        self._resting = True
        self.patience = _PATIENCE
        self.history = History()
        self.learners = LearnerReader(settings)
        self.events = EventStream(self._frame, idle=self._rest)

    def start(self) -> None:
        """Start sampling the curves."""
        self._sampler = asyncio.create_task(self._sample(), name="console curves")

    async def close(self) -> None:
        """End the pages' streams and disconnect from the broker."""
        await self.events.close()
        await _end(self._sampler)
        await self._rest()

    def hello(self) -> bytes:
        """Return the first event of a page: which worker it talks to, and the curves so far."""
        return event("hello", {**self._about, "history": self.history.points})

    # Reading.

    def _take(self, overview: Overview) -> None:
        self._activity.take(overview, time.monotonic())
        self.history.add(point(self._settings, overview.board, _millis(overview)))

    async def _sample(self) -> None:
        """Refresh more often than the watch does by itself while the curves move fast."""
        while True:
            overview = self._watch.latest
            if overview is not None and overview.board.labelled < _FEW_LABELS:
                await self._try(self._refresh)
            await asyncio.sleep(_SAMPLE_EVERY)

    async def _refresh(self) -> None:
        await self._watch.refresh(_SAMPLE_EVERY / 2)

    async def _read(self) -> None:
        overview = await self._watch.refresh(_FRESH)
        if self._reads_records:
            try:
                await self._newest.read(overview, self._watch.own)
            except NotAllowedError:
                self._reads_records = False  # the page goes without what this worker may not read

    async def _try(self, read: Callable[[], Awaitable[None]]) -> None:
        """Read; an error is kept, and shown on the page."""
        try:
            await read()
            self._error = None
        except HbError as error:
            self._error = error

    # Sending.

    async def _frame(self) -> bytes:
        """Read for a few seconds at most: a page must get a frame whatever the broker does.

        A reading that takes longer goes on, and the next frame waits for it again. The first frame
        does not wait if the watch has an overview, so that a page does not open empty.
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._try(self._read), name="console reading")
        opening = self._resting and self._watch.latest is not None
        self._resting = False
        done, _ = await asyncio.wait([self._reading], timeout=0 if opening else self.patience)
        for reading in done:
            reading.result()
        return event("snapshot", self._shown(in_time=bool(done) or opening))

    def _shown(self, in_time: bool) -> dict[str, Any]:
        overview = self._watch.latest
        symptoms = [*self._symptoms(), *(() if in_time else (_SLOW,))]
        shown: dict[str, Any] = {
            "worker": self._about["worker"],
            "now": wall(),
            "at": None if overview is None else _millis(overview),
            "verdict": system_verdict(overview, self._error, symptoms).report(),
            "points": self.history.points[-_REPEATED:],
        }
        if overview is not None:
            shown |= snapshot(
                self._settings, overview, self._activity, self._newest, self._statuses()
            )
        return shown

    async def _rest(self) -> None:
        self._resting = True
        await _end(self._reading)
        self.learners.forget()
        await self._newest.close()


def _millis(overview: Overview) -> int:
    return int(overview.at * 1000)


async def _end(task: "asyncio.Task[None] | None") -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])
