"""What this worker's own tasks have committed, as they report it, not read back from the broker.

To see the whole system, a worker needs the changelogs only for tasks of other workers. Once a task
is closed another worker continues it, and its changelogs are read from where its last commit ended.
"""

from collections import deque
from collections.abc import Mapping

from aiokafka import TopicPartition

from agents.agent_metrics import DIAGNOSED
from agents.monitor.state_view import StateView
from streams.engine.measurements import FEW
from streams.engine.observer import At, Committed, Observer, Opened
from streams.kafka.topics import Topics


class LocalState(Observer):
    """Keeps a view of the tasks that this worker has open.

    view       their committed state
    offsets    the changelog partitions that need not be read, and the end of each
    diagnoses  the latest ones of each partition, as they were sent
    """

    def __init__(self, names: Topics, view: StateView) -> None:
        self.view = view
        self.offsets: dict[TopicPartition, int] = {}
        self.diagnoses: dict[int, deque[bytes]] = {}
        self._names = names

    def opened(self, opened: Opened) -> None:
        """Copy the state that the task starts from."""
        for topic in self._topics(opened.agent):
            self.view.drop(topic, opened.partition)
            for table in self.view.wants(topic) & opened.rows.keys():
                self.view.put(topic, opened.partition, table, opened.rows[table]())
        self._reached(opened.agent, opened.partition, opened.at)

    def committed(self, commit: Committed) -> None:
        """Apply what has changed."""
        for topic in self._topics(commit.agent):
            for table in self.view.wants(topic) & commit.changes.keys():
                self.view.put(topic, commit.partition, table, commit.changes[table])
        self._reached(commit.agent, commit.partition, commit.at)
        if DIAGNOSED in commit.notes.last:
            newest = self.diagnoses.setdefault(commit.partition, deque(maxlen=FEW))
            newest.extend(commit.notes.last[DIAGNOSED])

    def closed(self, agent: str, partition: int) -> None:
        """Let the task's changelogs be read again."""
        for topic in self._topics(agent):
            self.offsets.pop(TopicPartition(topic, partition), None)

    def holds(self, agent: str, partitions: int) -> bool:
        """Tell whether this worker has all partitions of an agent open."""
        topic, _ = self._topics(agent)
        return all(TopicPartition(topic, number) in self.offsets for number in range(partitions))

    def adopted(self, view: StateView) -> Mapping[TopicPartition, int]:
        """Put everything into another view; return the partitions and their offsets."""
        for place in self.offsets:
            view.adopt(self.view, place.topic, place.partition)
        return self.offsets

    def _topics(self, agent: str) -> tuple[str, str]:
        return self._names.changelog(agent), self._names.shared(agent)

    def _reached(self, agent: str, partition: int, at: At) -> None:
        private, _ = self._topics(agent)
        self.view.positions[private, partition] = dict(at.positions)
        for topic in self._topics(agent):
            self.offsets[TopicPartition(topic, partition)] = at.offsets.get(topic, 0)
