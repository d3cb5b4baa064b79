"""All agents of an ensemble in this process, without a broker: for tests of rules and settings.

A record is processed when it is published, and so is everything that agents send because of it.
There is one partition, and time passes only when the test says so: the same test gives the same
diagnoses every time. Records, learning, the join and its time-outs are those of a worker; what is
missing is Kafka, the disk, and batches of more than one record.

    pipeline = Pipeline("ensemble.toml")
    diagnosis = pipeline.patient("a17", {"radius": 14.2, "texture": 20.1})
    pipeline.label("a17", "malignant")

`docs/testing.md` shows how to test a rule of your own with it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from agents.clients.splitting import Splitter
from agents.roles import specs
from schemas.deadletters import from_message
from schemas.reading import Reader
from schemas.records import DeadLetter, Diagnosis, Label, Prediction, Reasons, Record
from schemas.writing import encode
from settings.loading import load_settings
from settings.model import Settings
from settings.sections.base import milliseconds, parse_duration
from streams.engine.api import AgentSpec, Processor, TaskContext
from streams.engine.outbox import Outbox
from streams.engine.state.store import Store
from streams.engine.state.table import Change, Table
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics, local

START = 1_700_000_000_000
"""The time at which a pipeline starts, in milliseconds. It lies in the past, because records from
the future are refused."""


class Pipeline:
    """An ensemble that can be fed by hand.

    settings    the settings file, or settings that are loaded
    published   everything that is on each topic, one batch for each record
    now         the time of the next record, in milliseconds
    """

    def __init__(self, settings: Settings | str | Path) -> None:
        loaded = settings if isinstance(settings, Settings) else load_settings(Path(settings))
        alone = loaded.topics.model_copy(update={"partitions": 1})
        self.settings = loaded.model_copy(update={"topics": alone})
        self.topics = Topics.of(self.settings)
        self.now = START
        self.published: dict[str, list[Batch]] = {topic: [] for topic in self.topics.kinds}
        self.agents = {spec.name: Agent(spec) for spec in specs(self.settings)}
        self._readers = {
            topic: agent for agent in self.agents.values() for topic in agent.spec.inputs
        }
        self._splitter = Splitter(self.settings)

    # Input.

    def patient(
        self,
        name: str,
        features: Mapping[str, object],
        *,
        subject: str | None = None,
        unseen_by: Collection[str] = (),
    ) -> Diagnosis | None:
        """Publish a patient; return the diagnosis, None while it waits for a learner.

        `subject` says whose visit it is; `unseen_by` names learners that do not get to see it.
        """
        skipped = {self.topics.instances(learner) for learner in unseen_by}
        for topic, value in self._splitter.one(name, features, self.now, subject).items():
            if topic not in skipped:
                self.publish(topic, name.encode(), value)
        return self.diagnosis(name)

    def label(self, name: str, label: str | None, *, amends: bool = False) -> None:
        """Publish what a patient really had; `amends` or None to correct what was said before."""
        value = encode(Label(name, label, self.now, amends))
        self.publish(self.topics.labels, name.encode(), value)

    def wait(self, duration: str) -> None:
        """Let time pass (`"5s"`, `"30d"`): diagnoses that wait are made, labels expire."""
        self.now += milliseconds(parse_duration(duration))
        for agent in self.agents.values():
            self._publish_all(agent.tick(self.now, self.topics.deadletter))

    def restart(self) -> None:
        """End every agent and start it from what it saved, as after a crash."""
        for agent in self.agents.values():
            agent.restart()

    def publish(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        at: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Publish any record, now or at a time in milliseconds, and all that follows from it."""
        offset, time = len(self.published[topic]), self.now if at is None else at
        marked = {0: tuple(headers)} if headers else {}
        place = topic, 0, offset, offset + 1, offset + 1
        batch = Batch(*place, [offset], [time], [key], [value], marked)
        self.published[topic].append(batch)
        if topic in self._readers:
            self._publish_all(self._readers[topic].process(batch, self.topics.deadletter))

    def _publish_all(self, messages: Iterable["Message"]) -> None:
        for topic, time, key, value, headers in messages:
            self.publish(topic, key, value, at=time, headers=headers)

    # Results.

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """All diagnoses in their order."""
        return self._read(self.topics.diagnoses, Diagnosis)

    def diagnosis(self, name: str) -> Diagnosis | None:
        """Return the diagnosis of a patient, None if there is none yet."""
        key, reader = name.encode(), Reader(Diagnosis)
        batches = reversed(self.published[self.topics.diagnoses])
        return next(
            (reader.one(batch.values[0]) for batch in batches if batch.keys[0] == key), None
        )

    def predictions(self, learner: str) -> list[Prediction]:
        """Return what a local learner predicted, in its order."""
        everyone = self._read(self.topics.predictions, Prediction)
        return [prediction for prediction in everyone if prediction.learner == learner]

    def reasons(self, learner: str) -> list[Reasons]:
        """Return why a local learner predicted what it did, in its order, if that is published."""
        return self._read(self.topics.reasons(learner), Reasons)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """Everything that could not be used, each with its reason."""
        return [
            from_message(batch.headers[0], batch.keys[0], batch.values[0])
            for topic in self.topics.deadletters
            for batch in self.published[topic]
        ]

    def rule(self, learner: str, name: str) -> Any:
        """Return a rule of a local learner as it is now, to look at what it has learned."""
        processor: Any = self.agents[local(learner)].processor
        return next(rule for rule in processor.learner.rules if rule.name == name)

    def _read(self, topic: str, record: type[Record]) -> list[Any]:
        reader = Reader(record)
        return [reader.one(batch.values[0]) for batch in self.published[topic]]


Message = tuple[str, int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""What an agent sends: topic, time, key, value and headers."""


class Agent:
    """One agent: its tables, its processor, and what it would find after a crash."""

    def __init__(self, spec: AgentSpec) -> None:
        self.spec = spec
        self._saved = Saved()
        self.tables: dict[str, Table] = {}
        self.processor: Processor
        self._start()

    def process(self, batch: Batch, deadletters: str) -> "list[Message]":
        """Process a batch; return what the agent sends."""
        sent = Sent(self.spec.deadletters or deadletters)
        self.processor.process(batch, sent)
        return sent.messages

    def tick(self, now: int, deadletters: str) -> "list[Message]":
        """Let time pass; return what the agent sends."""
        sent = Sent(self.spec.deadletters or deadletters)
        self.processor.tick(now, sent)
        return sent.messages

    def restart(self) -> None:
        """Save what is due, and start again from what is saved."""
        self.processor.save()
        for name, table in self.tables.items():
            self._saved.write(name, table.drain())
        self._start()

    def _start(self) -> None:
        self.tables = {table.name: table for table in self.spec.tables()}
        for table in self.tables.values():
            table.load(cast("Store", self._saved))
        self.processor = self.spec.processor(TaskContext(self.spec.name, 0, self.tables))


class Sent(Outbox):
    """Keeps what an agent sends, in place of a transaction."""

    def __init__(self, deadletters: str) -> None:
        super().__init__(lambda: None, 0, deadletters)
        self.messages: list[Message] = []

    def _append(
        self,
        topic: str,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        extra: Sequence[tuple[str, bytes | None]],
    ) -> None:
        self.messages += [(topic, *record, tuple(extra)) for record in records]


class Saved:
    """The saved rows of one agent's tables, read as `Store` is."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, bytes]] = {}

    def write(self, table: str, changes: Iterable[Change]) -> None:
        """Take changes over; no value means deleted."""
        rows = self._rows.setdefault(table, {})
        for key, value in changes:
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a saved value."""
        return self._rows.get(table, {}).get(key)

    def get_many(self, table: str, keys: list[bytes]) -> list[bytes | None]:
        """Return saved values in the order of `keys`."""
        return [self.get(table, key) for key in keys]

    def keys(self, table: str) -> Iterator[bytes]:
        """Return all keys of a table, ascending."""
        return iter(sorted(self._rows.get(table, {})))

    def items(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys and values of a table, ascending by key."""
        return iter(sorted(self._rows.get(table, {}).items()))
