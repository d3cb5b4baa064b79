"""How fast records flow and which agents are stuck, worked out from the last few overviews.

All counts come from the exactly-once state, so a rate counts committed records only and is the same
on every worker's page.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agents.monitor.overview import Overview, TaskView
from streams.kafka.topics import ENSEMBLE, Topics, local

WINDOW = 5.0
"""Seconds over which a rate is averaged, and after which an agent without work is idle."""
SILENT_AFTER = 3.0
"""Seconds without progress, with work waiting, after which an agent counts as silent."""
_BEHIND = 1_000

State = Literal["working", "idle", "behind", "silent", "unfed", "unheld"]


@dataclass(frozen=True)
class Health:
    """The state of an agent; `text` describes it for people."""

    state: State
    text: str

    @property
    def well(self) -> bool:
        """Tell whether it needs no attention."""
        return self.state in ("working", "idle", "behind")


@dataclass(frozen=True)
class _Sample:
    at: float
    counts: Mapping[str, int]


class Activity:
    """Rates and health of the agents, from a series of overviews."""

    def __init__(self, names: Topics) -> None:
        self._names = names
        self._samples: deque[_Sample] = deque()
        self._moved: dict[str, float] = {}
        self._caught_up: dict[str, float] = {}
        self._tasks: list[TaskView] = []

    def take(self, overview: Overview, at: float) -> None:
        """Add an overview taken `at` this reading, in seconds, of a monotonic clock."""
        counts = counted(self._names, overview)
        previous = self._samples[-1].counts if self._samples else counts
        self._tasks = overview.tasks
        for agent in self._names.agents:
            tasks = [task for task in overview.tasks if task.agent == agent]
            if work_of(agent, counts) != work_of(agent, previous):
                self._moved[agent] = at
            if not any(task.behind for task in tasks):
                self._caught_up[agent] = at
            self._caught_up.setdefault(agent, at)
        self._samples.append(_Sample(at, counts))
        # The newest sample outside the window stays, so that a rate always covers the whole window.
        while len(self._samples) > 2 and at - self._samples[1].at >= WINDOW:
            self._samples.popleft()

    @property
    def passed(self) -> Mapping[str, int]:
        """Return how many records each topic has carried so far."""
        return self._samples[-1].counts if self._samples else {}

    def rates(self) -> dict[str, float]:
        """Return the records per second on each topic."""
        if not self._samples:
            return {}
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at - first.at
        if seconds <= 0:
            return dict.fromkeys(last.counts, 0.0)
        return {
            topic: max(count - first.counts.get(topic, 0), 0) / seconds
            for topic, count in last.counts.items()
        }

    def health(self) -> dict[str, Health]:
        """Return the health of every agent."""
        if not self._samples:
            return {}
        now = self._samples[-1].at
        return {agent: self._health(agent, now) for agent in self._names.agents}

    def _health(self, agent: str, now: float) -> Health:
        tasks = [task for task in self._tasks if task.agent == agent]
        free = [task.partition for task in tasks if task.holder is None]
        behind = sum(task.behind for task in tasks)
        if free:
            return Health("unheld", f"{_partitions(free)} no worker; {_waiting(behind)}")
        still = now - self._moved.get(agent, self._samples[0].at)
        stuck = min(still, now - self._caught_up[agent])
        if stuck >= SILENT_AFTER:
            return Health("silent", f"no progress for {stuck:.0f} s; {_waiting(behind)}")
        if self._unfed(agent, still):
            return Health("unfed", "receives no instances, while other learners do")
        if behind >= _BEHIND:
            return Health("behind", f"working; {_waiting(behind)}")
        if agent in self._moved and still < WINDOW:
            return Health("working", "working")
        return Health("idle", "idle")

    def _unfed(self, agent: str, still: float) -> bool:
        """Tell whether other learners get instances and this one does not."""
        if agent == ENSEMBLE or still < WINDOW:
            return False
        instances = [f"instances.{name}" for name in self._names.learners]
        rates = self.rates()
        return not rates[f"instances.{agent.removeprefix('local.')}"] and any(
            rates[topic] for topic in instances
        )


def counted(names: Topics, overview: Overview) -> dict[str, int]:
    """Return how many records each topic has carried so far.

    instances.<ll>, feedback.<ll>    into a learner, which sends one prediction per instance
    predictions, labels, contexts    into the ensemble
    diagnoses                        out of the ensemble
    """
    counts, scores = overview.counts, overview.scores
    carried = {f"instances.{name}": scores.instances.get(name, 0) for name in names.learners}
    carried |= {f"feedback.{name}": scores.learned.get(name, 0) for name in names.learners}
    for topic, kind in (("predictions", "prediction_"), ("labels", "label_")):
        carried[topic] = _events(counts, kind)
    if names.contextual:
        carried["contexts"] = _events(counts, "context_")
    carried["diagnoses"] = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    return carried


def _events(counts: Mapping[str, int], kind: str) -> int:
    return sum(count for name, count in counts.items() if name.startswith(kind))


def work_of(agent: str, counts: Mapping[str, int]) -> tuple[int, ...]:
    """Return the counts that grow while an agent works."""
    if agent == ENSEMBLE:
        return tuple(counts.get(topic, 0) for topic in ("predictions", "labels", "contexts"))
    name = agent.removeprefix(local(""))
    return counts[f"instances.{name}"], counts[f"feedback.{name}"]


def _partitions(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in numbers]
    if len(listed) == 1:
        return f"partition {listed[0]} has"
    listing = ", ".join(listed[:4]) + (" and more" if len(listed) > 4 else "")
    return f"partitions {listing} have"


def _waiting(behind: int) -> str:
    return f"{behind:,} records waiting" if behind != 1 else "1 record waiting"
