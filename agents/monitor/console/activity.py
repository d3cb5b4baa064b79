"""How fast records flow, and who is silent: from what the last few looks at the system counted.

Everything that is counted here comes from the exactly-once state, so a rate is a rate of what was
committed, and the same on every worker's page.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agents.monitor.overview import Overview, TaskView
from streams.kafka.topics import ENSEMBLE, Topics, local

WINDOW = 5.0
"""Seconds over which a rate is taken, and after which an agent without work is idle."""
SILENT_AFTER = 3.0
"""Seconds without any progress, with work waiting, after which an agent is held for silent."""
_BEHIND = 1_000

State = Literal["working", "idle", "behind", "silent", "unfed", "unheld"]


@dataclass(frozen=True)
class Health:
    """How an agent does; `text` says it in words."""

    state: State
    text: str

    @property
    def well(self) -> bool:
        """Tell whether nobody has to look after it."""
        return self.state in ("working", "idle", "behind")


@dataclass(frozen=True)
class _Look:
    at: float
    counts: Mapping[str, int]


class Pulse:
    """Takes in one overview after the other; knows rates and health as of the last one."""

    def __init__(self, names: Topics) -> None:
        self._names = names
        self._looks: deque[_Look] = deque()
        self._moved: dict[str, float] = {}
        self._caught_up: dict[str, float] = {}
        self._tasks: list[TaskView] = []

    def take(self, found: Overview, at: float) -> None:
        """Take in what was found `at` so many seconds of a steady clock."""
        counts = counted(self._names, found)
        last = self._looks[-1].counts if self._looks else counts
        self._tasks = found.tasks
        for agent in self._names.agents:
            mine = [task for task in found.tasks if task.agent == agent]
            if work_of(agent, counts) != work_of(agent, last):
                self._moved[agent] = at
            if not any(task.behind for task in mine):
                self._caught_up[agent] = at
            self._caught_up.setdefault(agent, at)
        self._looks.append(_Look(at, counts))
        # The newest look outside the window stays: a rate is over the whole window, not less.
        while len(self._looks) > 2 and at - self._looks[1].at >= WINDOW:
            self._looks.popleft()

    @property
    def passed(self) -> Mapping[str, int]:
        """Return how many records went each way so far."""
        return self._looks[-1].counts if self._looks else {}

    def rates(self) -> dict[str, float]:
        """Return records per second along each way through the system."""
        if not self._looks:
            return {}
        first, last = self._looks[0], self._looks[-1]
        seconds = last.at - first.at
        if seconds <= 0:
            return dict.fromkeys(last.counts, 0.0)
        return {
            way: max(count - first.counts.get(way, 0), 0) / seconds
            for way, count in last.counts.items()
        }

    def health(self) -> dict[str, Health]:
        """Return how every agent does."""
        if not self._looks:
            return {}
        now = self._looks[-1].at
        return {agent: self._health(agent, now) for agent in self._names.agents}

    def _health(self, agent: str, now: float) -> Health:
        mine = [task for task in self._tasks if task.agent == agent]
        free = [task.partition for task in mine if task.holder is None]
        behind = sum(task.behind for task in mine)
        if free:
            return Health("unheld", f"{_partitions(free)} held by no worker; {_waiting(behind)}")
        still = now - self._moved.get(agent, self._looks[0].at)
        stuck = min(still, now - self._caught_up[agent])
        if stuck >= SILENT_AFTER:
            return Health("silent", f"has not moved for {stuck:.0f} s; {_waiting(behind)}")
        if self._unfed(agent, still):
            return Health("unfed", "gets no instances, while other learners do")
        if behind >= _BEHIND:
            return Health("behind", f"at work; {_waiting(behind)}")
        if agent in self._moved and still < WINDOW:
            return Health("working", "at work")
        return Health("idle", "idle")

    def _unfed(self, agent: str, still: float) -> bool:
        """Tell whether the other learners decided lately, and this one did not."""
        if agent == ENSEMBLE or still < WINDOW:
            return False
        ways = [f"instances.{name}" for name in self._names.learners]
        rates = self.rates()
        return not rates[f"instances.{agent.removeprefix('local.')}"] and any(
            rates[way] for way in ways
        )


def counted(names: Topics, found: Overview) -> dict[str, int]:
    """Return how many records went each way so far.

    instances.<ll>, feedback.<ll>    into a learner; as many predictions as instances come out
    predictions, labels, contexts    into the ensemble
    diagnoses                        out of it
    """
    counts, board = found.counts, found.board
    ways = {f"instances.{name}": board.instances.get(name, 0) for name in names.learners}
    ways |= {f"feedback.{name}": board.learned.get(name, 0) for name in names.learners}
    for way, kind in (("predictions", "prediction_"), ("labels", "label_")):
        ways[way] = _events(counts, kind)
    if names.contextual:
        ways["contexts"] = _events(counts, "context_")
    ways["diagnoses"] = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    return ways


def _events(counts: Mapping[str, int], kind: str) -> int:
    return sum(count for name, count in counts.items() if name.startswith(kind))


def work_of(agent: str, counts: Mapping[str, int]) -> tuple[int, ...]:
    """Return what moves when an agent works."""
    if agent == ENSEMBLE:
        return tuple(counts.get(way, 0) for way in ("predictions", "labels", "contexts"))
    name = agent.removeprefix(local(""))
    return counts[f"instances.{name}"], counts[f"feedback.{name}"]


def _partitions(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in numbers]
    if len(listed) == 1:
        return f"partition {listed[0]} is"
    shown = ", ".join(listed[:4]) + (" and more" if len(listed) > 4 else "")
    return f"partitions {shown} are"


def _waiting(behind: int) -> str:
    return f"{behind:,} records wait" if behind != 1 else "1 record waits"
