"""The data behind the pages: read once, however many pages are open.

read     the watch's overview, the newest diagnoses, the reasons of dead letters
sample   a point of the curves, even with no page open, so that a page opened late has them all
frame    everything as one event, built once for all pages
keep     the curves in a file every few seconds, for the time after a restart
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from agents.monitor.console.activity import Activity
from agents.monitor.console.curves_file import CurvesFile
from agents.monitor.console.diagnosis_reader import DiagnosisReader
from agents.monitor.console.event_stream import EventStream, event
from agents.monitor.console.history import History, point
from agents.monitor.console.learner_reader import LearnerReader
from agents.monitor.console.newest_records import NewestRecords
from agents.monitor.console.snapshot import about, snapshot
from agents.monitor.overview import Overview
from agents.monitor.reliability import Colour, Concern, standing
from agents.monitor.watch import Watch
from settings.building import fusion
from settings.errors import HbError
from settings.model import Settings
from streams.clock import wall
from streams.engine.health import Cause, Symptom
from streams.engine.tasks.task import TaskStatus
from streams.kafka.connection import NotAllowedError
from streams.kafka.topics import Topics, local

_PATIENCE = 3.0
_FRESH = 0.5
_SAMPLE_EVERY = 0.25
_FEW_LABELS = 1_000
"""Until then the curves move fast and are sampled more often; there is little load yet."""
_SLOW = Symptom(Cause.BROKER_SLOW, "the broker is slow to answer")
_KEEP_EVERY = 10.0
"""Seconds between two writes of the curves: the most that a killed worker loses of them."""
_STEADY = 3.0
"""Seconds after which a change among the workers counts as lasting."""
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
        watch.listeners.append(self._take)
        self._about = about(settings, uuid4().hex[:8], wall(), version("hedged-bandits"))
        self._activity = Activity(Topics.of(settings))
        self._newest = NewestRecords(settings)
        self._reading: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._members: frozenset[str] | None = None
        self._seen_members: frozenset[str] | None = None
        self._seen_since = 0.0
        self._error: HbError | None = None
        self._reads_records = True
        self._resting = True
        self.patience = _PATIENCE
        self.history = History()
        self._file = CurvesFile(settings, fusion(settings).experts(list(settings.learners)))
        self.learners = LearnerReader(settings)
        self.diagnoses = DiagnosisReader(settings)
        self.events = EventStream(self._frame, idle=self._rest)

    def start(self) -> None:
        """Continue the curves of the last worker here, and sample them."""
        self._file.load(self.history, wall())
        self._sampler = asyncio.create_task(self._sample(), name="console curves")
        self._keeper = asyncio.create_task(self._keep(), name="console curves file")

    async def close(self) -> None:
        """Say goodbye to the pages, keep the curves and disconnect from the broker."""
        await self.events.close(event("bye", {"farewell": self._settings.worker.farewell}))
        await _end(self._sampler)
        await _end(self._keeper)
        self._file.save(self.history)
        await self._rest()

    def hello(self) -> bytes:
        """Return the first event of a page: which worker it talks to, and the curves so far."""
        curves = {"history": self.history.points, "marks": self.history.marks}
        return event("hello", {**self._about, "colours": self._file.colours, **curves})

    # Reading.

    def _take(self, overview: Overview) -> None:
        self._activity.take(overview, time.monotonic())
        self.history.add(point(self._settings, overview.scores, _millis(overview)))
        self._mark_members(overview)

    def _mark_members(self, overview: Overview) -> None:
        """Mark workers that have come or gone; while partitions move they only seem to."""
        now = frozenset(overview.members)
        if now != self._seen_members:
            self._seen_members, self._seen_since = now, overview.at
        if now == self._members or overview.at - self._seen_since < _STEADY:
            return
        before, self._members = self._members, now
        if before is None:
            return
        counted = {"left": len(before - now), "joined": len(now - before)}
        changes = [f"{n} worker{'s' if n > 1 else ''} {verb}" for verb, n in counted.items() if n]
        self.history.mark(_millis(overview), "workers", ", ".join(changes))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_EVERY)
            await asyncio.to_thread(self._file.save, self.history)

    async def _sample(self) -> None:
        """Refresh more often than the watch does by itself while the curves move fast."""
        while True:
            overview = self._watch.latest
            if overview is not None and overview.scores.labelled < _FEW_LABELS:
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
            for diagnosis in reversed(self._newest.latest):
                self.diagnoses.show(diagnosis)

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
        return event("snapshot", self._page_data(in_time=bool(done) or opening))

    def _page_data(self, in_time: bool) -> dict[str, Any]:
        overview = self._watch.latest
        symptoms = [*self._symptoms(), *(() if in_time else (_SLOW,))]
        page: dict[str, Any] = {
            "worker": self._about["worker"],
            "now": wall(),
            "at": None if overview is None else _millis(overview),
            "standing": standing(
                self._settings, overview, self._error, symptoms, self._stuck()
            ).report(),
            "points": self.history.points[-_REPEATED:],
            "marks": self.history.marks,
        }
        if overview is not None:
            page |= snapshot(
                self._settings,
                overview,
                self._activity,
                self._newest,
                self._statuses(),
                returns=self.diagnoses.returns,
            )
        return page

    def _stuck(self) -> list[Concern]:
        """Return the agents that make no progress; one without a worker is known as such."""
        return [
            Concern(Colour.AMBER, health.state, f"{agent.removeprefix(local(''))}: {health.text}")
            for agent, health in self._activity.health().items()
            if not health.well and health.state != "unheld"
        ]

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
