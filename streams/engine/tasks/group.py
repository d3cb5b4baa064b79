"""All tasks of one worker: which partitions it holds, and what a rebalance does to them."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable

from settings.errors import HbError
from streams.engine.api import AgentSpec
from streams.engine.changelogs.replica import Others, Replica
from streams.engine.changelogs.restore import say_if_removed
from streams.engine.config import EngineConfig
from streams.engine.health import Cause, Level, Symptom, Verdict, verdict
from streams.engine.observer import SILENT, Observer, Observers
from streams.engine.tasks.commit import Hook, no_hook
from streams.engine.tasks.source import Source
from streams.engine.tasks.task import Phase, Task, TaskStatus, describe
from streams.kafka.batch import Batch

_log = logging.getLogger(__name__)


class TaskGroup:
    """The tasks of the partitions assigned to this worker."""

    def __init__(
        self,
        config: EngineConfig,
        specs: Iterable[AgentSpec],
        *,
        hook: Hook = no_hook,
        observer: Observer = SILENT,
    ) -> None:
        self.config = config
        self.specs: dict[str, AgentSpec] = {}
        self.tasks: dict[tuple[str, int], Task] = {}
        self._spec_of: dict[str, AgentSpec] = {}
        self.joined = False
        self.still_since: float | None = None
        """When the current rebalance began, during which nothing is read; None if there is none."""
        self.crashed: Callable[[BaseException], object] = _ignore
        """Called when an essential part of the worker has ended."""
        self._crash: BaseException | None = None
        self.observers = Observers(observer)
        """Receives the tasks' reports; observers may be added before the first assignment."""
        self._hook = hook
        self._source: Source | None = None
        self._replicas: dict[str, Replica] = {}
        self._starting = asyncio.Lock()
        for spec in specs:
            self.add(spec)

    def add(self, spec: AgentSpec) -> None:
        """Add an agent; call this before the first assignment."""
        clashes = [topic for topic in spec.inputs if topic in self._spec_of]
        if clashes or spec.name in self.specs:
            raise HbError(
                f"agent {spec.name}: its name or an input ({clashes}) is taken by another"
            )
        self.specs[spec.name] = spec
        self._spec_of.update(dict.fromkeys(spec.inputs, spec))

    def connect(self, source: Source) -> None:
        """Set where batches come from; call this before the first assignment."""
        self._source = source

    @property
    def topics(self) -> Collection[str]:
        """Return all input topics."""
        return self._spec_of.keys()

    async def revoke(self) -> None:
        """Stop all processing and commit what has been processed, before a rebalance.

        Tasks that are still opening are cancelled: if one continued, it could fence the next owner.
        """
        opening = [self.tasks.pop(key) for key, task in list(self.tasks.items()) if task.opening]
        await asyncio.gather(
            *[task.close() for task in opening], *[task.pause() for task in self.tasks.values()]
        )

    async def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Hold exactly the tasks of these partitions: close, keep or open tasks as needed."""
        assigned = self._tasks_of(partitions)
        self.joined = True
        leaving = [self.tasks.pop(key) for key in list(self.tasks) if key not in assigned]
        await asyncio.gather(*[task.close() for task in leaving])
        await asyncio.gather(*[task.resume() for task in self.tasks.values()])
        for key in sorted(assigned - self.tasks.keys()):
            self.tasks[key] = task = self._new_task(*key)
            task.start().add_done_callback(self._ended)

    async def close(self) -> None:
        """Commit what has been processed and close all tasks."""
        tasks = list(self.tasks.values())
        self.tasks.clear()
        await asyncio.gather(*[task.close() for task in tasks])
        replicas = list(self._replicas.values())
        self._replicas.clear()
        await asyncio.gather(*[replica.close() for replica in replicas])

    def _tasks_of(self, partitions: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        inputs = {(topic, number) for topic, number in partitions if topic in self._spec_of}
        tasks = {(self._spec_of[topic].name, number) for topic, number in inputs}
        for name, number in tasks:
            missing = [t for t in self.specs[name].inputs if (t, number) not in inputs]
            if missing:
                raise HbError(
                    f"agent {name} got partition {number} without that of {', '.join(missing)}; all"
                    " its input topics need the same number of partitions"
                )
        return tasks

    def _new_task(self, name: str, partition: int) -> Task:
        if self._source is None:
            raise HbError("the group is not connected to a source of batches")
        spec = self.specs[name]
        others = (lambda: self._others(spec, partition)) if spec.follow else None
        return Task(
            self.config,
            spec,
            partition,
            self._source,
            hook=self._hook,
            observer=self.observers,
            others=others,
            unconfirmed=self._give_up,
        )

    def _give_up(self) -> None:
        """Close all sessions: the coordinator has been silent for so long that others may own them.

        Tasks open again when it has answered; if the worker has lost them, that is a rebalance.
        """
        running = [task for task in self.tasks.values() if task.session is not None]
        if running:
            _log.warning(
                "the group's coordinator does not answer; giving up %d tasks", len(running)
            )
        for task in running:
            task.give_up()

    async def _others(self, spec: AgentSpec, partition: int) -> Others:
        """Return what the other partitions counted, after reading it up to now."""
        async with self._starting:
            replica = self._replicas.get(spec.name)
            if replica is None:
                replica = Replica(self.config, spec.name, spec.tables(), spec.signer())
                (await replica.start()).add_done_callback(self._ended)
                self._replicas[spec.name] = replica
        return replica.others(partition)

    def _task(self, topic: str, partition: int) -> Task | None:
        spec = self._spec_of.get(topic)
        return None if spec is None else self.tasks.get((spec.name, partition))

    def wants(self, topic: str, partition: int) -> bool:
        """Tell whether a batch of a partition can be delivered now."""
        task = self._task(topic, partition)
        return task is not None and task.wants(topic)

    def deliver(self, batch: Batch) -> bool:
        """Hand a batch to its task; False if the task did not take it."""
        task = self._task(batch.topic, batch.partition)
        return task is not None and task.deliver(batch)

    def expected(self, topic: str, partition: int) -> int | None:
        """Return the offset to read a partition from, None if its task is not open."""
        task = self._task(topic, partition)
        if task is None or task.session is None:
            return None
        return task.session.expected()[topic]

    def skip(self, topic: str, partition: int, offset: int) -> None:
        """Tell a task that a partition begins only at `offset` now."""
        task = self._task(topic, partition)
        if task is not None and task.session is not None:
            say_if_removed(topic, partition, task.session.expected()[topic], offset)
            task.session.skip(topic, offset)

    def statuses(self) -> list[TaskStatus]:
        """Return how all tasks are doing."""
        return [task.status() for _, task in sorted(self.tasks.items())]

    def _ended(self, work: "asyncio.Task[None]") -> None:
        """Handle the end of a loop, which happens only on purpose or because of a bug."""
        if work.cancelled() or (error := work.exception()) is None:
            return
        self._crash = self._crash or error
        _log.error("%s has crashed: %s", work.get_name(), describe(error))
        self.crashed(error)

    def verdict(self) -> Verdict:
        """Return how the worker is doing."""
        return verdict(self.symptoms())

    def trouble(self) -> list[str]:
        """Return what prevents the worker from being ready, one sentence each; empty if ready."""
        return [symptom.text for symptom in self.verdict().symptoms]

    def symptoms(self) -> list[Symptom]:
        """Return everything that is wrong with the worker."""
        tasks = [symptom for status in self.statuses() if (symptom := self.symptom_of(status))]
        return [*self.own_symptoms(), *tasks]

    def own_symptoms(self) -> list[Symptom]:
        """Return what is wrong with the worker as a whole, not with one of its tasks."""
        symptoms = []
        if self._crash is not None:
            symptoms.append(Symptom(Cause.CRASHED, f"it crashed: {describe(self._crash)}"))
        if not self.joined:
            symptoms.append(
                Symptom(Cause.NOT_JOINED, "the worker has not joined its consumer group yet")
            )
        if self.still_since is not None:
            still = time.monotonic() - self.still_since
            if still > self.config.stuck_after:
                text = f"nothing is read for {still:.0f} s: a rebalance does not end"
                symptoms.append(Symptom(Cause.REBALANCE_STUCK, text))
        if self._source is not None:
            symptoms += self._source.symptoms()
        for replica in self._replicas.values():
            symptoms += replica.symptoms()
        return symptoms

    def symptom_of(self, status: TaskStatus) -> Symptom | None:
        """Return what is wrong with a task."""
        name = f"task {status.agent}/{status.partition}"
        because = f": {status.reason}" if status.reason else ""
        if status.phase is Phase.FAILED:
            return Symptom(Cause.TASK_FAILED, f"{name} is failed{because}")
        if status.phase is not Phase.RUNNING:
            first = not status.reopenings and status.phase is Phase.OPENING
            cause = Cause.TASK_OPENING if first else Cause.TASK_REOPENING
            return Symptom(cause, f"{name} is {status.phase.value}{because}")
        if status.oldest is not None and status.oldest > self.config.stuck_after:
            text = f"{name} has not committed for {status.oldest:.0f} s"
            return Symptom(Cause.NOT_COMMITTING, text)
        return None

    def conditions(self) -> dict[tuple[str, int], str]:
        """Return what is wrong with each input partition, for display by other processes.

        Empty for a partition whose task is well. What is wrong with the worker as a whole is wrong
        with all its partitions.
        """
        whole = verdict(self.own_symptoms())
        common = Symptom(whole.cause, whole.text) if whole.cause is not None else None
        lines: dict[tuple[str, int], str] = {}
        for status in self.statuses():
            symptom = self.symptom_of(status) or common
            troubled = symptom is not None and symptom.cause.level is Level.TROUBLE
            line = symptom.written() if symptom is not None and troubled else ""
            lines |= {(t, status.partition): line for t in self.specs[status.agent].inputs}
        return lines

    def hung(self) -> Verdict:
        """Return whether a loop is stuck, which neither waiting nor the broker can fix."""
        symptoms = [symptom for symptom in self.own_symptoms() if symptom.cause is Cause.CRASHED]
        still = {} if self._source is None else {Cause.NOT_READING: self._source.still_for}
        still[Cause.NOT_FOLLOWING] = max((r.still_for for r in self._replicas.values()), default=0)
        oldest = [status.oldest or 0.0 for status in self.statuses()]
        still[Cause.NOT_COMMITTING] = max(oldest, default=0) - self.config.commit_timeout
        symptoms += [
            Symptom(cause, f"{cause.value.replace('_', ' ')} for {seconds:.0f} s")
            for cause, seconds in still.items()
            if seconds > self.config.hung_after
        ]
        return verdict(symptoms)


def _ignore(_error: BaseException) -> None:
    """Do nothing about a crash: the verdict reports it."""
