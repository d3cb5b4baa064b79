"""All topics of one partition, as columns. A patient stays in one partition, so one is enough.

The ends of the topics are requested downstream first: what led to a record was committed before it,
and so lies within the span of its own topic.
"""

from dataclasses import dataclass

from audit.recording.reader import Recording, Span
from audit.recording.topic_logs import (
    ContextLog,
    DeadLog,
    DiagnosisLog,
    FeedbackLog,
    InstanceLog,
    LabelLog,
    Log,
    Names,
    PredictionLog,
    ReasonLog,
    RowLog,
)
from settings.building import fusion
from settings.model import Settings
from streams.kafka.topics import Topics


@dataclass(slots=True)
class PartitionLogs:
    """What the topics of one partition hold, and which part of them still exists."""

    partition: int
    names: Names
    instances: dict[str, RowLog]
    predictions: PredictionLog
    diagnoses: DiagnosisLog
    labels: LabelLog
    contexts: ContextLog | None
    feedback: dict[str, FeedbackLog]
    explanations: dict[str, ReasonLog]
    """The reasons of the learners that publish them."""
    dead: dict[str, DeadLog]
    reasons: dict[str, dict[int, list[str]]]
    """Why records were refused, by topic and offset."""
    spans: dict[str, Span]

    @property
    def settings(self) -> Settings:
        """The settings that the logs were read with."""
        return self.names.settings

    def by_topic(self) -> dict[str, Log]:
        """Return the logs by topic, in the order in which they must be read."""
        topics = Topics.of(self.settings)
        return {
            **self.dead,
            **{topics.feedback(name): log for name, log in self.feedback.items()},
            **{topics.reasons(name): log for name, log in self.explanations.items()},
            topics.diagnoses: self.diagnoses,
            topics.predictions: self.predictions,
            topics.labels: self.labels,
            **({} if self.contexts is None else {topics.contexts: self.contexts}),
            **{topics.instances(name): log for name, log in self.instances.items()},
        }

    @property
    def vouched_from(self) -> int | None:
        """Return the time from which all topics are complete; None if nothing was removed."""
        times = [
            log.first_time
            for topic, log in self.by_topic().items()
            if self.spans[topic].cut
            and log.first_time is not None
            # Nothing else follows from reasons, so nothing else is in doubt without them.
            and not isinstance(log, ReasonLog)
        ]
        return max(times, default=None)


def empty_logs(settings: Settings, partition: int) -> PartitionLogs:
    """Return logs that hold nothing yet."""
    names = Names(settings, partition)
    context = settings.ensemble.context
    reasons: dict[str, dict[int, list[str]]] = {}
    return PartitionLogs(
        partition,
        names,
        {name: InstanceLog(names, name) for name in settings.learners},
        PredictionLog(names),
        DiagnosisLog(names, fusion(settings).experts(list(settings.learners))),
        LabelLog(names),
        None if context is None else ContextLog(names, context.partition()),
        {name: FeedbackLog(names, name) for name in settings.learners},
        {name: ReasonLog(names, name) for name in Topics.of(settings).explained},
        {topic: DeadLog(reasons) for topic in Topics.of(settings).deadletters},
        reasons,
        {},
    )


async def read_partition(recording: Recording, settings: Settings, partition: int) -> PartitionLogs:
    """Read all topics of a partition, from their start to their present end."""
    logs = empty_logs(settings, partition)
    by_topic = logs.by_topic()
    for topic in by_topic:
        logs.spans |= await recording.spans([topic], partition)
    for topic, log in by_topic.items():  # the dead letters come first
        log.refused = logs.reasons.get(topic, {})
        await recording.read(logs.spans[topic], log.take)
    return logs
