"""What this worker's own tasks have committed, heard from them and not read back from the broker.

Whoever looks at the whole system from within a worker needs the changelogs only for what others
hold. A task that is closed is somebody else's to go on with: from then on its changelogs are read,
from where its last commit ended.
"""

from collections import deque
from collections.abc import Mapping

from aiokafka import TopicPartition

from agents.agent_metrics import DIAGNOSED
from agents.monitor.state_view import StateView
from streams.engine.measurements import FEW
from streams.engine.observer import At, Committed, Observer, Opened
from streams.kafka.topics import Topics


class OwnState(Observer):
    """Keeps a view of the tasks that this worker has open.

    view       their committed state
    offsets    the changelog partitions that need not be read, and where each would go on
    diagnoses  the latest ones of each partition, as they were sent
    """

    def __init__(self, names: Topics, view: StateView) -> None:
        self.view = view
        self.offsets: dict[TopicPartition, int] = {}
        self.diagnoses: dict[int, deque[bytes]] = {}
        self._names = names

    def opened(self, opened: Opened) -> None:
        """Take over what the task starts from."""
        for topic in self._topics(opened.agent):
            self.view.drop(topic, opened.partition)
            for table in self.view.wants(topic) & opened.rows.keys():
                self.view.put(topic, opened.partition, table, opened.rows[table]())
        self._reached(opened.agent, opened.partition, opened.at)

    def committed(self, done: Committed) -> None:
        """Take over what has changed."""
        for topic in self._topics(done.agent):
            for table in self.view.wants(topic) & done.changes.keys():
                self.view.put(topic, done.partition, table, done.changes[table])
        self._reached(done.agent, done.partition, done.at)
        if DIAGNOSED in done.notes.last:
            kept = self.diagnoses.setdefault(done.partition, deque(maxlen=FEW))
            kept.extend(done.notes.last[DIAGNOSED])

    def closed(self, agent: str, partition: int) -> None:
        """Leave the task to the changelogs."""
        for topic in self._topics(agent):
            self.offsets.pop(TopicPartition(topic, partition), None)

    def holds(self, agent: str, partitions: int) -> bool:
        """Tell whether this worker has all partitions of an agent open."""
        topic, _ = self._topics(agent)
        return all(TopicPartition(topic, number) in self.offsets for number in range(partitions))

    def adopted(self, view: StateView) -> Mapping[TopicPartition, int]:
        """Put everything that is here into another view; return the partitions as `offsets`."""
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
