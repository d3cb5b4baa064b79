"""One patient: the diagnosis, the label once it is known, and each learner's reasons if published.

A user may read some topics and not others (`hb acls`): what may not be read is left out and named.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from agents.clients.topic_reader import TopicReader
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis, Label, Reasons
from settings.model import Settings
from streams.kafka.connection import NotAllowedError
from streams.kafka.topics import Topics


@dataclass(frozen=True)
class Patient:
    """What the topics hold of a patient: the first of each kind, None where there is none.

    label     the last word about it (docs/join.md), None if that is a withdrawal
    reasons   by learner, of those that publish them
    denied    topics that this user may not read
    """

    diagnosis: Diagnosis | None = None
    label: str | None = None
    reasons: Mapping[str, Reasons] = field(default_factory=dict)
    denied: tuple[str, ...] = ()


async def find_patient(settings: Settings, name: str) -> Patient:
    """Read all topics that mention a patient, from their start."""
    topics = Topics.of(settings)
    diagnosis = await _first(settings, topics.diagnoses, Reader(Diagnosis), name)
    readers = {topics.reasons(learner): Reader(Reasons) for learner in topics.explained}
    explanations: dict[str, Any] = {}
    denied = []
    label = None
    try:
        label_reader = Reader(Label, known={"label": settings.labels})
        label = last_word(
            [record async for record in _all(settings, topics.labels, label_reader, name)]
        )
    except NotAllowedError:
        denied.append(topics.labels)
    for topic, reader in readers.items():
        try:
            explanations[topic] = await _first(settings, topic, reader, name)
        except NotAllowedError:
            denied.append(topic)
    why = {learner: explanations.get(topics.reasons(learner)) for learner in topics.explained}
    return Patient(
        diagnosis,
        label,
        {learner: reasons for learner, reasons in why.items() if reasons is not None},
        tuple(denied),
    )


def last_word(labels: Iterable[Label]) -> str | None:
    """Return what counts of a patient's labels, in the order of the topic."""
    word: str | None = None
    for label in labels:
        if word is None or label.amends or label.label is None:
            word = label.label
    return word


async def _first(settings: Settings, topic: str, reader: Reader[Any], name: str) -> Any:
    """Return the first readable record of a patient on a topic, None if there is none."""
    async with aclosing(_all(settings, topic, reader, name)) as records:
        async for record in records:
            return record
    return None


async def _all(
    settings: Settings, topic: str, reader: Reader[Any], name: str
) -> AsyncGenerator[Any, None]:
    """Return the readable records of a patient on a topic."""
    key = name.encode()
    async with TopicReader(settings, [topic], "start") as stored:
        async for records in stored.present():
            for record in records:
                if record.key == key:
                    # One that cannot be read is among the dead letters.
                    with suppress(RecordError):
                        yield reader.one(record.value)
