"""One patient: the diagnosis, the label once it is known, and each learner's reasons if published.

A user may read some topics and not others (`hb acls`): what may not be read is left out and named.
"""

from collections.abc import Mapping
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
    others: dict[str, Reader[Any]] = {
        topics.labels: Reader(Label, known={"label": settings.labels}),
        **{topics.reasons(learner): Reader(Reasons) for learner in topics.explained},
    }
    found: dict[str, Any] = {}
    denied = []
    for topic, reader in others.items():
        try:
            found[topic] = await _first(settings, topic, reader, name)
        except NotAllowedError:
            denied.append(topic)
    why = {learner: found.get(topics.reasons(learner)) for learner in topics.explained}
    label = found.get(topics.labels)
    return Patient(
        diagnosis,
        None if label is None else label.label,
        {learner: reasons for learner, reasons in why.items() if reasons is not None},
        tuple(denied),
    )


async def _first(settings: Settings, topic: str, reader: Reader[Any], name: str) -> Any:
    """Return the first readable record of a patient on a topic, None if there is none."""
    key = name.encode()
    async with TopicReader(settings, [topic], "start") as stored:
        async for records in stored.present():
            for record in records:
                if record.key == key:
                    try:
                        return reader.one(record.value)
                    except RecordError:  # which is among the dead letters
                        continue
    return None
