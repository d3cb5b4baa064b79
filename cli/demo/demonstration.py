"""The steps of a demonstration.

    1. broker    a real Kafka in the demo's own folder
    2. topics    as the settings declare them
    3. workers   one process for the learners and one for the ensemble, supervised
    4. patients  one after another, some with a missing value; each label comes a little later
    5. a crash   with half of the patients published, the learners' worker is killed (kill -9)
    6. the end   wait until every label is learned; one was wrong, and is amended; wait while a
                 console is open, then recount everything

Figures come from the ensemble's own state; the recount at the end uses what is on the topics.
"""

import asyncio
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

import orjson

from agents.clients.client import Publisher
from agents.clients.patient_files import Source
from agents.clients.produce import Production, Published, Trial
from agents.clients.topic_reader import TopicReader
from agents.monitor.overview import state_view, sums
from agents.monitor.scores import ENSEMBLE, Scorer, Scores
from agents.monitor.watch import look
from agents.worker_pages import worker_pages
from cli.demo import supervise
from cli.demo.folder import DemoFolder
from cli.demo.label_publisher import LateLabels
from schemas.reading import Reader
from schemas.records import REFER, Diagnosis
from settings.errors import HbError
from settings.loading import load_settings
from settings.model import Settings
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared

COMING = "patients are coming"
_OPEN = "the console is open"
_LOOK_EVERY = 0.5
_WORKERS = 2
_READY_WITHIN = 90.0
_LEARNED_WITHIN = 120.0
_AHEAD, _MORE = 3, 5
"""How many patients may be ahead of their labels: a few at first, one more for every five."""
_SECONDS = 10.0
_RATES = 50.0, 400.0


class DemoError(HbError):
    """The demonstration failed."""


@dataclass
class Progress:
    """Its progress. Lists are in the order of the diagnoses; only the demo knows `truth`.

    wrong   for each diagnosis whether the ensemble, and each learner, was wrong
    """

    step: str = "starting"
    total: int = 0
    rate: float = 0.0
    page: str = ""
    published: Published = field(default_factory=Published)
    truth: dict[str, str] = field(default_factory=dict)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    wrong: dict[str, list[bool]] = field(default_factory=dict)
    explored: dict[str, int] = field(default_factory=dict)
    scores: Scores = field(default_factory=Scores)
    seconds: float = 0.0
    messages: list[str] = field(default_factory=list)
    """What has happened, in sentences for those who watch."""
    gaps: frozenset[str] = frozenset()
    """Patients of whom a value is missing, by id; those who come again have a suffix."""
    mislabelled: str = ""
    """The patient whose label is wrong until it is amended."""
    before: Scores | None = None
    """The scores before that: no bound covers labels that were corrected."""
    away: float | None = None
    """Seconds until the worker that was killed was back."""

    @property
    def with_gaps(self) -> int:
        """Return how many patients with a missing value were diagnosed."""
        return sum(diagnosis.id.partition("~")[0] in self.gaps for diagnosis in self.diagnoses)

    @property
    def untaught(self) -> int:
        """Return how many patients were referred at first, because too little was learned."""
        return len(list(takewhile(lambda diagnosis: diagnosis.answer == REFER, self.diagnoses)))

    def exploration(self, name: str) -> float:
        """Return the share of a learner's opinions that were explorations, so far."""
        return self.explored.get(name, 0) / max(len(self.diagnoses), 1)

    def take(self, diagnosis: Diagnosis) -> None:
        """Add a diagnosis, and compare it with the truth."""
        truth = self.truth[diagnosis.id]
        self._tell_first(diagnosis)
        self.diagnoses.append(diagnosis)
        self.wrong.setdefault(ENSEMBLE, []).append(diagnosis.label != truth)
        for name, opinion in diagnosis.learners.items():
            if opinion.label is not None:
                self.wrong.setdefault(name, []).append(opinion.label != truth)
            self.explored[name] = self.explored.get(name, 0) + opinion.exploring

    def _tell_first(self, diagnosis: Diagnosis) -> None:
        """Tell what happens for the first time with this diagnosis."""
        before = len(self.diagnoses)
        if not before and diagnosis.answer == REFER:
            self.messages.append("it is untaught: no label is known yet, so patients are referred")
        if before and before == self.untaught and diagnosis.answer != REFER:
            self.messages.append(f"after {before:,} patients it has learned enough to answer")
        if diagnosis.id in self.gaps and not self.with_gaps:
            self.messages.append(
                "a patient came without one of its values, and is diagnosed all the same"
            )


class Demo:
    """One demonstration. `progress` may be read from another thread."""

    def __init__(
        self,
        place: DemoFolder,
        patients: int,
        seed: int,
        *,
        rate: float | None = None,
        crash: bool = True,
    ) -> None:
        self.progress = Progress(total=patients)
        self.may_begin: Callable[[], bool] = lambda: True
        """Patients wait until this holds."""
        self._place, self._patients, self._seed = place, patients, seed
        self._rate, self._crash = rate, crash
        self._keeper: subprocess.Popen[str] | None = None

    @contextmanager
    def kept(self, stay: bool) -> Iterator[None]:
        """Run a keeper process alongside the block; it cleans up afterwards unless told to keep."""
        self._place.need_free()
        hidden = ("HB_SET__", "HB_SETTINGS")
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        command = [sys.executable, "-m", supervise.__name__, str(self._place.folder)]
        # Our own module, in its own session: this process handles Ctrl-C.
        self._keeper = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
            start_new_session=True,
        )
        staying = False
        try:
            self._place.claim(self._keeper.pid)
            yield
            if stay:
                self._tell("keep")
                staying = True
        finally:
            if self._keeper.stdin is not None:
                self._keeper.stdin.close()
            if not staying:
                self._keeper.wait()

    def _tell(self, text: str) -> None:
        if self._keeper is None or self._keeper.stdin is None:
            raise DemoError("the demo has no keeper")
        self._keeper.stdin.write(f"{text}\n")
        self._keeper.stdin.flush()

    async def run(self, source: Source, proposed: str) -> Settings:
        """Run all steps on a running broker; return the settings of the ensemble."""
        progress, place = self.progress, self._place
        place.write_settings(proposed)
        settings = load_settings(place.settings, environ={})
        progress.step = "creating the topics"
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))
        progress.step = "starting the workers"
        self._tell("start")
        async with self._following(settings):
            await self._await_workers(settings)
            await self._stream(settings, source)
            progress.step = "learning the last labels"
            await self._await_learned(settings)
            if progress.mislabelled:
                await self._amend(settings)
            await self._await_viewers(settings)
        progress.step = "done"
        return settings

    async def _stream(self, settings: Settings, source: Source) -> None:
        progress = self.progress
        low, high = _RATES
        progress.rate = self._rate or min(max(self._patients / _SECONDS, low), high)
        trial = Trial(
            rate=progress.rate,
            repeat=10**6,
            limit=self._patients,
            shuffle=True,
            seed=self._seed,
            labels=False,
        )
        progress.step = COMING
        production = Production(settings, source, trial, notice=self._note, gate=self._keep_pace)
        progress.published = production.done
        began = time.monotonic()
        await production.run()
        progress.seconds = time.monotonic() - began

    async def _keep_pace(self) -> None:
        """Make patients wait for labels while little has been learned, and on a busy machine."""
        progress = self.progress

        def too_far() -> bool:
            learned = progress.scores.labelled
            return progress.published.patients - learned > _AHEAD + learned // _MORE

        while too_far() or not self.may_begin():  # noqa: ASYNC110 - the state is on the broker
            await asyncio.sleep(0.01)

    def _note(self, ids: Sequence[str], labels: Sequence[str]) -> None:
        self.progress.truth.update(zip(ids, labels, strict=True))

    # Reading back.

    @asynccontextmanager
    async def _following(self, settings: Settings) -> AsyncIterator[None]:
        """Follow diagnoses and state, and publish labels, while the block runs; errors end it."""
        body = asyncio.current_task()
        labels = LateLabels(settings, self._seed)
        followers = [
            asyncio.create_task(self._follow_diagnoses(settings, labels)),
            asyncio.create_task(self._follow_state(settings)),
            asyncio.create_task(labels.run()),
        ]
        if self._crash:
            followers.append(asyncio.create_task(self._crash_midway(settings)))

        def ended(follower: "asyncio.Task[None]") -> None:
            if not follower.cancelled() and follower.exception() and body is not None:
                body.cancel()

        for follower in followers:
            follower.add_done_callback(ended)
        try:
            yield
        except asyncio.CancelledError:
            for follower in followers:
                if follower.done() and not follower.cancelled():
                    follower.result()
            raise
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.wait(followers)

    async def _follow_diagnoses(self, settings: Settings, labels: LateLabels) -> None:
        reader = Reader(Diagnosis)
        async with TopicReader(settings, [Topics.of(settings).diagnoses], "start") as topic:
            while True:
                for record in await topic.read():
                    diagnosis = reader.one(record.value)
                    self.progress.take(diagnosis)
                    labels.expect(diagnosis.id, self._label(settings, diagnosis.id))

    def _label(self, settings: Settings, patient: str) -> str:
        """Return the label that a patient gets at first: for one of them a wrong one."""
        truth, progress = self.progress.truth[patient], self.progress
        if not self._crash or len(progress.diagnoses) != self._patients // 4:
            return truth
        progress.mislabelled = patient
        return next(label for label in settings.labels if label != truth)

    async def _follow_state(self, settings: Settings) -> None:
        # Only the ensemble's state: the learners' state is large, and changes with every label.
        topics = [Topics.of(settings).shared(ENSEMBLE)]
        view, scorer = state_view(Topics.of(settings)), Scorer(settings)
        async with TopicReader(settings, topics, "start") as topic:
            while True:
                if view.take(await topic.read()):
                    self.progress.scores = scorer.score(sums(settings, view))

    async def _amend(self, settings: Settings) -> None:
        """Correct the label that was wrong, and wait until it is recounted."""
        progress, patient = self.progress, self.progress.mislabelled
        progress.step, progress.before = "amending a label", progress.scores
        progress.messages.append("one label was wrong: it is amended and recounted")
        async with Publisher(settings) as publisher:
            await publisher.label(patient, progress.truth[patient], amends=True)

        async def counted() -> bool:
            overview = await look(settings)
            progress.scores = overview.scores
            return overview.counts["amendment_taken"] > 0

        await self._until(counted, _LEARNED_WITHIN, "the amended label is not counted")

    # The crash.

    async def _crash_midway(self, settings: Settings) -> None:
        """Kill the learners' worker with half of the patients published; await its successor."""
        progress = self.progress
        while progress.published.patients < self._patients // 2:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        before = {page.pid for page in worker_pages(settings.worker.state)}
        self._tell("kill")
        began = time.monotonic()
        progress.messages.append(
            "kill -9: the learners' worker is dead; patients wait on their topics"
        )

        async def back() -> bool:
            fresh = [p for p in worker_pages(settings.worker.state) if p.pid not in before]
            return bool(fresh) and await asyncio.to_thread(_is_ready, fresh[0].address)

        await self._until(back, _READY_WITHIN, "the worker that was killed is not back")
        progress.away = time.monotonic() - began
        progress.messages.append(
            f"another worker took over after {progress.away:.0f} s, where the dead one had stopped"
        )

    # Waiting.

    async def _await_workers(self, settings: Settings) -> None:
        """Wait until both workers are ready."""

        async def ready() -> bool:
            pages = worker_pages(settings.worker.state)
            consoles = [page.address for page in pages if ENSEMBLE in page.agents]
            self.progress.page = consoles[0] if consoles else ""
            if len(pages) < _WORKERS:
                return False
            answers = [asyncio.to_thread(_is_ready, page.address) for page in pages]
            return all(await asyncio.gather(*answers))

        await self._until(ready, _READY_WITHIN, "the workers are not ready")

    async def _await_learned(self, settings: Settings) -> None:
        """Wait until every patient is diagnosed, and every label learned by all learners."""
        progress = self.progress

        async def settled() -> bool:
            counts = len(progress.diagnoses), progress.scores.labelled
            return counts == (self._patients, self._patients)

        async def learned() -> bool:
            progress.scores = (await look(settings)).scores
            return all(count == self._patients for count in progress.scores.learned.values())

        async def whole() -> bool:
            return not self._crash or progress.away is not None

        await self._until(settled, _LEARNED_WITHIN, "not every label is known to the ensemble")
        await self._until(whole, _READY_WITHIN, "the worker that was killed is not back")
        await self._until(learned, _LEARNED_WITHIN, "not every label is learned")

    async def _await_viewers(self, settings: Settings) -> None:
        """Wait while a console is open, so that it does not end before its reader's eyes."""
        progress = self.progress
        while any(
            await asyncio.gather(
                *(
                    asyncio.to_thread(_viewers, p.address)
                    for p in worker_pages(settings.worker.state)
                )
            )
        ):
            if not progress.step.startswith(_OPEN):
                progress.step = f"{_OPEN}: close the page, or press Ctrl-C, to end the demo"
                progress.messages.append(progress.step)
            await asyncio.sleep(_LOOK_EVERY)

    async def _until(
        self, holds: Callable[[], Awaitable[bool]], seconds: float, trouble: str
    ) -> None:
        deadline = time.monotonic() + seconds
        while not await holds():
            if time.monotonic() > deadline:
                raise DemoError(
                    f"{trouble} after {seconds:g} s; the workers said last: {self._said()}"
                )
            if self._keeper is not None and self._keeper.poll() is not None:
                raise DemoError("the process that keeps the workers has ended")
            await asyncio.sleep(0.1)

    def _said(self) -> str:
        lines = self._place.log.last(3)
        return " | ".join(f"{line.worker}: {line.text}" for line in lines) or "nothing"


def _viewers(page: str) -> int:
    """Return how many consoles of a worker are open."""
    try:
        with urllib.request.urlopen(f"{page}/viewers", timeout=2) as answer:  # noqa: S310 - our own
            return int(orjson.loads(answer.read())["open"])
    except (urllib.error.URLError, OSError, ValueError, KeyError):
        return 0


def _is_ready(page: str) -> bool:
    try:
        with urllib.request.urlopen(f"{page}/readyz", timeout=2) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
