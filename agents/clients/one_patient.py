"""One patient: the diagnosis, the label once it is known, and each learner's reasons if published.

A user may read some topics and not others (`hb acls`): what may not be read is left out and named.
Only the partition of the patient's id is read, and from the end backwards or from a time on.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition

from agents.clients.topic_reader import TopicReader
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis, Label, Reasons
from settings.model import Settings
from streams.kafka.connection import NotAllowedError
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics

EARLIER = 60_000
"""How far clocks may differ, in milliseconds: a record may seem to come before its cause."""
VISITS = 20_000
"""Among how many of the latest diagnoses the other visits of a person are looked for."""


@dataclass(frozen=True)
class Patient:
    """What the topics hold of a patient: the newest of each kind, None where there is none.

    label     the last word about it (docs/join.md), None if that is a withdrawal
    labelled  when that word came, in milliseconds since 1970, None if there is none yet
    reasons   by learner, of those that publish them
    visits    all visits of the same person among the latest, this one too; none without a subject
    denied    topics that this user may not read
    """

    diagnosis: Diagnosis | None = None
    label: str | None = None
    labelled: int | None = None
    reasons: Mapping[str, Reasons] = field(default_factory=dict)
    visits: tuple[Diagnosis, ...] = ()
    denied: tuple[str, ...] = ()


async def find_patient(settings: Settings, name: str) -> Patient:
    """Read what the topics hold of a patient."""
    topics = Topics.of(settings)
    diagnosis = await _newest(settings, topics.diagnoses, Reader(Diagnosis), name)
    if diagnosis is None:
        return Patient()
    denied = []
    word = None
    try:
        word = last_word(await _labels(settings, diagnosis))
    except NotAllowedError:
        denied.append(topics.labels)
    reasons = {}
    for learner in topics.explained:
        topic = topics.reasons(learner)
        try:
            reasons[learner] = await _newest(settings, topic, Reader(Reasons), name)
        except NotAllowedError:
            denied.append(topic)
    return Patient(
        diagnosis,
        None if word is None else word.label,
        None if word is None else word.at,
        {learner: why for learner, why in reasons.items() if why is not None},
        await _visits(settings, diagnosis),
        tuple(denied),
    )


def last_word(labels: Iterable[Label]) -> Label | None:
    """Return what counts of a patient's labels, in the order of the topic."""
    word: Label | None = None
    for label in labels:
        if overrules(label, word):
            word = label
    return word


def overrules(label: Label, before: Label | None) -> bool:
    """Tell whether a label counts in place of the last word before it."""
    return before is None or before.label is None or label.amends or label.label is None


async def person(settings: Settings, subject: str, latest: int | None = None) -> list[Diagnosis]:
    """Return the diagnoses of one person's visits, oldest first: of the latest, or of all kept."""
    reader, needle, diagnoses = Reader(Diagnosis), subject.encode(), []
    async with TopicReader(settings, [Topics.of(settings).diagnoses], "start") as topic:
        if latest is not None:
            per_partition = -(-latest // settings.topics.partitions)
            topic.seek(
                {p: max(topic.begins[p], end - per_partition) for p, end in topic.ends.items()}
            )
        async for records in topic.present():
            for record in records:
                # Most are of others; these need not be decoded, unless the text is escaped.
                if record.value and (needle in record.value or b"\\" in record.value):
                    with suppress(RecordError):
                        diagnoses.append(reader.one(record.value))
    visits = {visit.id: visit for visit in diagnoses if visit.subject == subject}
    return sorted(visits.values(), key=lambda visit: visit.at)


async def _visits(settings: Settings, diagnosis: Diagnosis) -> tuple[Diagnosis, ...]:
    if diagnosis.subject is None:
        return ()
    return tuple(await person(settings, diagnosis.subject, VISITS))


async def _newest(settings: Settings, topic: str, reader: Reader[Any], name: str) -> Any:
    """Return the newest readable record of a patient on a topic, None if there is none."""
    key = name.encode()
    partition = partition_of(key, settings.topics.partitions)
    async with TopicReader(settings, [topic], "start", only=[partition]) as stored:
        async for records in stored.backwards():
            for record in reversed(records):
                if record.key == key:
                    # One that cannot be read is among the dead letters.
                    with suppress(RecordError):
                        return reader.one(record.value)
    return None


async def _labels(settings: Settings, diagnosis: Diagnosis) -> list[Label]:
    """Return the labels of a diagnosis: those since then, otherwise those that waited for it."""
    topics = Topics.of(settings)
    waited = int(settings.ensemble.label_ttl.total_seconds() * 1000)
    begin = max(diagnosis.at - waited, 0)
    reader = Reader(Label, known={"label": settings.labels})
    records = await _since(settings, topics.labels, reader, diagnosis.id, begin)
    later = [label for at, label in records if at >= diagnosis.at - EARLIER]
    if later or not records:
        return later
    diagnoses = await _since(settings, topics.diagnoses, Reader(Diagnosis), diagnosis.id, begin)
    before = any(other.at < diagnosis.at for _, other in diagnoses)
    return [] if before else [label for _, label in records]  # else they were of another visit


async def _since(
    settings: Settings, topic: str, reader: Reader[Any], name: str, begin: int
) -> list[tuple[int, Any]]:
    """Return a patient's readable records on a topic from a time on, each with its time."""
    key, readable = name.encode(), []
    place = TopicPartition(topic, partition_of(key, settings.topics.partitions))
    async with TopicReader(settings, [topic], "start", only=[place.partition]) as stored:
        first = (await stored.since(begin))[place]
        stored.seek({place: max(first, stored.begins[place])})
        async for records in stored.present():
            for record in records:
                if record.key == key:
                    with suppress(RecordError):
                        readable.append((record.timestamp, reader.one(record.value)))
    return readable
