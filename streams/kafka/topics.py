"""All topics of an ensemble, declared in one place from its settings.

| topic              | holds                                     | kept                      |
|--------------------|-------------------------------------------|---------------------------|
| `instances.<ll>`   | what one local learner sees of a patient  | `retention.instances`     |
| `contexts`         | what a contextual ensemble learner sees   | `retention.contexts`      |
| `predictions`      | what the local learners say               | `retention.predictions`   |
| `diagnoses`        | what the ensemble learner says            | `retention.diagnoses`     |
| `labels`           | the truth, late or never                  | `retention.labels`        |
| `feedback.<ll>`    | what one local learner learns from        | `retention.feedback`      |
| `reasons.<ll>`     | why it says what it says, if switched on  | `retention.reasons`       |
| `erasures`         | digests of patients to be erased          | `retention.erasures`      |
| `deadletter.<ll>`  | what one local learner could not use      | `retention.deadletters`   |
| `deadletter`       | what the ensemble learner could not use   | `retention.deadletters`   |
| `<agent>.changelog`| an agent's state that only it reads       | the last of each key      |
| `<agent>.shared`   | an agent's state that all partitions read | the last of each key      |
| `local.<ll>.models`| what the rules of a learner have learned  | the last of each key      |

All of them have the same number of partitions: so one partition follows a patient through the
system. Agents are `local.<ll>` and `ensemble`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from settings.client_settings import AnySettings
from settings.sections.base import FOREVER, milliseconds
from settings.sections.topics import TopicSettings

if TYPE_CHECKING:
    from settings.model import Settings

ENSEMBLE = "ensemble"
# Kafka deletes whole segments only, so a segment must span less than the retention time.
_SEGMENTS = 10
_SHORTEST_SEGMENT = timedelta(minutes=1)
_LONGEST_SEGMENT = timedelta(days=1)
# Kafka reckons age by the records' own times: one of the far future would keep its file till then.
_AHEAD = timedelta(hours=1)
# A dead letter is the record as it came plus headers, so it needs more room than the record.
_LARGE_RECORD = 2 * 2**20
# What was deleted is gone from a changelog after this, as soon as anything is written to it.
ERASED_WITHIN = timedelta(days=1)
# A task that runs writes to its changelog at least so often (`streams.engine.config`).
WRITTEN_WITHIN = timedelta(days=1)
# A worker that was away for less than this still learns which keys were deleted.
TOMBSTONES = timedelta(days=30)
_CHANGELOG_SEGMENT = 64 * 2**20
# A learner's model is one record; settings whose models are larger are refused (hb settings check).
CHANGELOG_RECORD = 16 * 2**20


def local(learner: str) -> str:
    """Return the name of a local learner's agent."""
    return f"local.{learner}"


@dataclass(frozen=True)
class Topic:
    """A topic as it is declared, or as it was found."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Topics:
    """The names of all topics of one ensemble."""

    prefix: str
    learners: tuple[str, ...]
    contextual: bool = False
    explained: tuple[str, ...] = ()
    """The local learners that give their reasons."""

    @classmethod
    def of(cls, settings: AnySettings) -> "Topics":
        """Return the names for these settings."""
        contextual = settings.ensemble.context is not None
        explained = tuple(name for name, learner in settings.learners.items() if learner.reasons)
        return cls(settings.topics.prefix, tuple(settings.learners), contextual, explained)

    def instances(self, learner: str) -> str:
        """What a local learner sees."""
        return f"{self.prefix}instances.{learner}"

    def feedback(self, learner: str) -> str:
        """What a local learner learns from."""
        return f"{self.prefix}feedback.{learner}"

    def reasons(self, learner: str) -> str:
        """Why a local learner says what it says: as private as what it sees."""
        return f"{self.prefix}reasons.{learner}"

    @property
    def contexts(self) -> str:
        """What a contextual ensemble learner sees."""
        return f"{self.prefix}contexts"

    @property
    def predictions(self) -> str:
        """What local learners say."""
        return f"{self.prefix}predictions"

    @property
    def diagnoses(self) -> str:
        """What the ensemble learner says."""
        return f"{self.prefix}diagnoses"

    @property
    def labels(self) -> str:
        """The truth, when it comes."""
        return f"{self.prefix}labels"

    @property
    def erasures(self) -> str:
        """Which patients are to be erased."""
        return f"{self.prefix}erasures"

    @property
    def deadletter(self) -> str:
        """What the ensemble learner could not use."""
        return f"{self.prefix}deadletter"

    def deadletter_of(self, learner: str) -> str:
        """What a local learner could not use: it shows features, so it is as private as they are.

        Letters that earlier versions wrote are on `deadletter`.
        """
        return f"{self.deadletter}.{learner}"

    @property
    def deadletters(self) -> tuple[str, ...]:
        """All dead letters."""
        return (self.deadletter, *map(self.deadletter_of, self.learners))

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents, those of the local learners first."""
        return (*map(local, self.learners), ENSEMBLE)

    def changelog(self, agent: str) -> str:
        """The state of an agent that only the partition's owner reads."""
        return f"{self.prefix}{agent}.changelog"

    def shared(self, agent: str) -> str:
        """The state of an agent that all its partitions and the pages read."""
        return f"{self.prefix}{agent}.shared"

    def models(self, learner: str) -> str:
        """What the rules of a local learner have learned: all its partitions read it."""
        return f"{self.prefix}{local(learner)}.models"

    @property
    def states(self) -> tuple[str, ...]:
        """All changelogs, by agent."""
        return tuple(name for agent in self.agents for name in self.states_of(agent))

    def states_of(self, agent: str) -> tuple[str, ...]:
        """The changelogs of an agent."""
        models = (self.models(name) for name in self.learners if local(name) == agent)
        return (self.changelog(agent), self.shared(agent), *models)

    @property
    def kinds(self) -> dict[str, str]:
        """Each topic that is not a changelog, and the retention setting that it follows."""
        of_learners = {
            **{self.instances(learner): "instances" for learner in self.learners},
            **{self.feedback(learner): "feedback" for learner in self.learners},
            **{self.reasons(learner): "reasons" for learner in self.explained},
        }
        return {
            **of_learners,
            **({self.contexts: "contexts"} if self.contextual else {}),
            self.predictions: "predictions",
            self.diagnoses: "diagnoses",
            self.labels: "labels",
            self.erasures: "erasures",
            **dict.fromkeys(self.deadletters, "deadletters"),
        }


def declared(settings: "Settings") -> tuple[Topic, ...]:
    """Return every topic as it should be."""
    topics, names = settings.topics, Topics.of(settings)
    configs = {name: _kept(topics.retention_of(kind)) for name, kind in names.kinds.items()}
    for name in names.deadletters:
        configs[name]["max.message.bytes"] = str(_LARGE_RECORD)
    configs |= {name: _compacted() for name in names.states}
    return tuple(_declare(name, config, topics) for name, config in configs.items())


def _declare(name: str, config: dict[str, str], topics: TopicSettings) -> Topic:
    config = {**config, "min.insync.replicas": str(topics.min_in_sync)}
    return Topic(name, topics.partitions, topics.replication, config)


def _kept(retention: timedelta) -> dict[str, str]:
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(milliseconds(retention)),
        "message.timestamp.after.max.ms": str(milliseconds(_AHEAD)),
    }
    if retention != FOREVER:
        span = min(max(retention / _SEGMENTS, _SHORTEST_SEGMENT), _LONGEST_SEGMENT)
        config["segment.ms"] = str(milliseconds(span))
    return config


def _compacted() -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "delete.retention.ms": str(milliseconds(TOMBSTONES)),
        "max.compaction.lag.ms": str(milliseconds(ERASED_WITHIN)),
        "segment.bytes": str(_CHANGELOG_SEGMENT),
        "max.message.bytes": str(CHANGELOG_RECORD),
    }
