"""One patient on the topics: found without reading them whole, with reasons, label and visits."""

import asyncio
from uuid import uuid4

import msgspec
import orjson
import pytest

from agents.clients import one_patient
from agents.clients.one_patient import find_patient, person
from agents.clients.sender import Sender
from agents.clients.topic_reader import TopicReader
from agents.monitor.console.diagnosis_reader import DiagnosisReader
from agents.monitor.console.snapshot import token_of
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis, Label, Reasons
from schemas.writing import encode
from settings.loading import load_settings
from streams.kafka.topics import Topics
from tests.streams.user_kit import make_topics, write_settings

AT = 1_760_000_000_000
DAY = 86_400_000
OTHERS = 6_000


def made(name, at, subject=None, **changes):
    return msgspec.structs.replace(
        EXAMPLES[Diagnosis], id=name, at=at, subject=subject, learners={}, **changes
    )


@pytest.fixture(scope="module")
def settings(tmp_path_factory, broker_address):
    """An ensemble whose topics hold many patients, and a few that are told apart."""
    name = f"one{uuid4().hex[:8]}"
    file = write_settings(tmp_path_factory.mktemp("one"), broker_address, name)
    explained = "[learners.imaging]\nreasons = true\nrules.bayes.kind = 'bayes'"
    file.write_text(file.read_text().replace("[learners.imaging]", explained))
    loaded = load_settings(file)
    make_topics(loaded)
    asyncio.run(fill(loaded))
    return loaded


async def fill(settings):
    names = Topics.of(settings)
    kinds = {Diagnosis: names.diagnoses, Label: names.labels, Reasons: names.reasons("imaging")}
    others = [made(f"p{n}", AT + n) for n in range(OTHERS)]
    first = made("twice", AT, learned=1)
    records = [
        first, Label("twice", "benign", AT + 1),
        made("early", AT + DAY), Label("early", "malignant", AT + DAY // 2),
        *others,
        made("twice", AT + 9 * DAY, "s5", learned=2),
        made("other", AT + 9 * DAY, "s5"), made("nobody's", AT + 9 * DAY, "s6"),
        msgspec.structs.replace(EXAMPLES[Reasons], id="twice", at=AT + 9 * DAY),
        Label("other", "benign", AT + 10 * DAY), Label("other", None, AT + 11 * DAY),
    ]  # fmt: skip
    async with Sender(settings, list(kinds.values())) as sender:
        await asyncio.gather(
            *(
                sender.send(record.id.encode(), {kinds[type(record)]: encode(record)}, record.at)
                for record in records
            )
        )


@pytest.fixture
def read(monkeypatch):
    """How many records each topic gave."""
    counted = {}

    class Counting(TopicReader):
        async def present(self):
            async for records in super().present():
                for record in records:
                    counted[record.topic] = counted.get(record.topic, 0) + 1
                yield records

    monkeypatch.setattr(one_patient, "TopicReader", Counting)
    return counted


async def test_of_an_id_that_came_twice_the_newest_is_shown_and_little_is_read(settings, read):
    patient = await find_patient(settings, "twice")
    assert patient.diagnosis.learned == 2
    assert (patient.label, patient.labelled) == (None, None), "the label was of the first"
    assert patient.reasons["imaging"].parts.keys() == {"radius", "texture", "site"}
    read.clear()
    newest = f"p{OTHERS - 1}"
    assert (await find_patient(settings, newest)).diagnosis.id == newest
    names = Topics.of(settings)
    assert read[names.diagnoses] <= OTHERS / 4, "the end of one of two partitions"
    assert read.get(names.labels, 0) <= 4


async def test_a_label_that_waited_for_its_patient_counts_and_a_withdrawn_one_is_told(settings):
    early = await find_patient(settings, "early")
    assert (early.label, early.labelled) == ("malignant", AT + DAY // 2)
    withdrawn = await find_patient(settings, "other")
    assert (withdrawn.label, withdrawn.labelled) == (None, AT + 11 * DAY)
    assert (await find_patient(settings, "nobody")).diagnosis is None


async def test_the_visits_of_a_person_are_found_together(settings):
    patient = await find_patient(settings, "other")
    assert {visit.id for visit in patient.visits} == {"twice", "other"}
    assert await person(settings, "s6") == [made("nobody's", AT + 9 * DAY, "s6")]
    assert await person(settings, "s7") == []


async def test_the_console_shows_reasons_visits_and_a_label_withdrawn_by_any_program(settings):
    reader = DiagnosisReader(settings)
    shown = orjson.loads(await reader.of(token_of(settings.name, "twice")))
    assert shown["reasons"]["imaging"]["parts"][0] == ["radius", 1.5], "for the label it was given"
    (visit,) = shown["visits"]
    assert visit["token"] == token_of(settings.name, "other")
    assert "s5" not in str(shown)
    shown = orjson.loads(await reader.of(visit["token"]))
    assert shown["truth"] == {"label": None, "at": AT + 11 * DAY}
    assert [each["token"] for each in shown["visits"]] == [token_of(settings.name, "twice")]
    assert await reader.of("0" * 16) is None
