"""What users' programs call: publish patients and labels, wait for diagnoses, on a real broker."""

import asyncio
import doctest
from pathlib import Path

import pytest
from engine_kit import PATIENCE, committed, produce
from user_kit import PATIENT, ensemble, worker_process, write_settings

from agents.clients.client import (
    AsyncClient,
    Client,
    Diagnoses,
    NoDiagnosisError,
    PatientError,
    Publisher,
    ReusedIdError,
)
from agents.clients.pseudonyms import Pseudonyms
from agents.clients.topic_reader import TopicReader
from schemas.examples import EXAMPLES
from schemas.reading import Reader
from schemas.records import Context, Diagnosis, Instance, Label
from schemas.rows import Feature, RowReader
from schemas.writing import encode
from settings.errors import BrokerError, InputError
from settings.loading import load_settings
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics

USE = Path(__file__).parents[2] / "docs/use.md"


@pytest.fixture
def file(tmp_path, broker_address, prefix):
    return ensemble(tmp_path, broker_address, prefix.strip("."), context=True)


@pytest.fixture(scope="module")
def live(tmp_path_factory, broker_address):
    """The settings file of an ensemble whose worker runs."""
    file = ensemble(tmp_path_factory.mktemp("live"), broker_address, "live", partitions=3)
    with worker_process(file):
        yield file


def diagnosis(name):
    example = EXAMPLES[Diagnosis]
    return encode(Diagnosis(name, *[getattr(example, f) for f in example.__struct_fields__[1:]]))


async def test_each_learner_gets_its_features_and_nothing_else(file, broker_address):
    async with Publisher(file) as publisher:
        topics = Topics.of(publisher.settings)
        name = await publisher.publish({**PATIENT, "name": "not sent"})
        await publisher.label(name, "malignant")
    published = {
        topic: await committed(broker_address, topic)
        for topic in (
            topics.instances("imaging"),
            topics.instances("history"),
            topics.contexts,
            topics.labels,
        )
    }
    assert [len(records) for records in published.values()] == [1, 1, 1, 1]
    (imaging,), (history,), (context,), (label,) = published.values()
    assert Reader(Instance).one(imaging.value).x == {"radius": 14.2, "texture": 20.1}
    assert Reader(Instance).one(history.value).x == {"age": 61.0, "site": "left"}
    assert Reader(Context).one(context.value).x == {"age": 61.0}
    assert Reader(Label).one(label.value).label == "malignant"
    places = {(r.partition, r.key) for records in published.values() for r in records}
    assert places == {(partition_of(name.encode(), 2), name.encode())}
    features = [Feature("age"), Feature("site", ("left", "right"))]
    assert RowReader(features).read([history.value]).rows == [[61.0, 0.0]]


def test_partitions_are_those_of_kafkas_own_clients():
    # From the Java client: Utils.toPositive(Utils.murmur2(key)) % 8.
    assert [partition_of(key, 8) for key in (b"21", b"foobar", b"a-little-bit-long-string")] == [
        (-973932308 & 0x7FFFFFFF) % 8,
        (-790332482 & 0x7FFFFFFF) % 8,
        (-985981536 & 0x7FFFFFFF) % 8,
    ]


async def test_what_no_learner_could_read_is_not_published(file, broker_address):
    async with Publisher(file) as publisher:
        with pytest.raises(PatientError, match="feature 'radius': expected a finite number"):
            await publisher.publish({**PATIENT, "radius": float("inf")})
        with pytest.raises(PatientError, match="label: expected one of benign, malignant"):
            await publisher.label("a17", "unsure")
        topics = Topics.of(publisher.settings)
    for topic in (topics.instances("imaging"), topics.instances("history"), topics.labels):
        assert await committed(broker_address, topic) == []


async def test_a_diagnosis_can_be_asked_for_before_and_after_it_comes(file, broker_address):
    topic = Topics.of(load_settings(file)).diagnoses
    await produce(broker_address, topic, [diagnosis("before")])
    async with Diagnoses(file) as diagnoses:
        early = asyncio.create_task(diagnoses.of("early"))
        await produce(broker_address, topic, [diagnosis("late")])
        await produce(broker_address, topic, [diagnosis("early")], partition=1)
        assert (await early).id == "early"
        assert (await diagnoses.of("late")).id == "late"
        with pytest.raises(NoDiagnosisError, match=r"within 0.1 s; do the workers run"):
            await diagnoses.of("before", timeout=0.1)
        with pytest.raises(InputError, match="iterate over others"):
            await anext(aiter(diagnoses))


async def test_all_diagnoses_from_the_start(file, broker_address):
    topic = Topics.of(load_settings(file)).diagnoses
    await produce(broker_address, topic, [diagnosis("a"), diagnosis("b")])
    async with Diagnoses(file, since="start") as diagnoses:
        stream = aiter(diagnoses)
        assert [(await anext(stream)).id for _ in range(2)] == ["a", "b"]
        await produce(broker_address, topic, [diagnosis("c")], partition=1)
        assert (await anext(stream)).id == "c"
        with pytest.raises(InputError, match="wait for others"):
            await diagnoses.of("a")


async def test_calls_at_the_same_time_share_one_connection(file, monkeypatch):
    opened = []

    class Counted(TopicReader):
        async def __aenter__(self):
            opened.append(self)
            return await super().__aenter__()

    monkeypatch.setattr("agents.clients.client.TopicReader", Counted)
    async with Publisher(file) as publisher:
        await asyncio.gather(*(publisher.publish(PATIENT, id=f"own-{n}") for n in range(20)))
    assert len(opened) == 1


async def test_what_comes_while_the_present_is_read_is_read_next(file):
    settings = load_settings(file)
    labels = Topics.of(settings).labels
    async with Publisher(file) as publisher:
        for n in range(9):
            await publisher.label(f"early-{n}", "benign")
        async with TopicReader(settings, [labels], "start") as reader:
            for n in range(9):
                await publisher.label(f"late-{n}", "benign")
            reader.seek(reader.begins)  # what has been fetched is fetched again, with the new ones
            early = [r.key.decode() async for records in reader.present() for r in records]
            late: list[str] = []
            async with asyncio.timeout(PATIENCE):
                while len(late) < 9:
                    late += [record.key.decode() for record in await reader.read()]
    assert sorted(early) == [f"early-{n}" for n in range(9)]
    assert sorted(late) == [f"late-{n}" for n in range(9)]


async def test_topics_that_are_missing_or_partitioned_differently_are_reported(
    file, tmp_path, broker_address
):
    folder = tmp_path / "other"
    folder.mkdir()
    nowhere = write_settings(folder, broker_address, "nowhere")
    with pytest.raises(BrokerError, match=r"topic nowhere.* is missing; create it with: hb topics"):
        async with Publisher(nowhere):
            pass
    with pytest.raises(BrokerError, match=r"topic nowhere.diagnoses is missing"):
        async with Diagnoses(nowhere):
            pass
    with pytest.raises(BrokerError, match="has 2 partitions and the settings say 5"):
        async with Publisher(load_settings(file, ["topics.partitions=5"])):
            pass
    with pytest.raises(BrokerError, match="is missing"), Client(nowhere):
        pass


async def test_a_client_that_loses_its_broker_says_so(file, monkeypatch):
    async with Diagnoses(file) as diagnoses:
        waiting = asyncio.create_task(diagnoses.of("a"))
        await asyncio.sleep(0)
        monkeypatch.setattr(diagnoses._reader, "read", _broken)
        with pytest.raises(BrokerError, match="gone"):
            await asyncio.wait_for(waiting, 120)
        with pytest.raises(BrokerError, match="gone"):
            await diagnoses.of("b")


async def _broken(*_):
    raise BrokerError("gone")


def test_diagnose_and_label_in_a_plain_program(live):
    with Client(live) as client:
        first = client.diagnose(PATIENT)
        assert first.complete
        assert set(first.learners) == {"imaging", "history"}
        for _ in range(3):
            client.label(client.diagnose(PATIENT).id, "malignant")
        name = client.publish({**PATIENT, "site": "right"}, id="a17")
        assert name == "a17"
        assert client.diagnosis(name).id == "a17"


async def test_many_patients_at_once(live):
    async with Publisher(live) as publisher, Diagnoses(live) as diagnoses:
        names = await asyncio.gather(*[publisher.publish(PATIENT) for _ in range(200)])
        diagnosed = await asyncio.gather(*[diagnoses.of(name) for name in names])
    assert [answer.id for answer in diagnosed] == names


async def test_many_patients_in_one_call_and_their_traces(live, broker_address):
    rows = [{**PATIENT, "radius": 5.0 + i} for i in range(1100)]
    names = [f"many{i}" for i in range(len(rows))]
    many, single = (f"00-{digit * 32}-00f067aa0ba902b7-01" for digit in "12")
    async with AsyncClient(live) as client:
        answers = await client.diagnose_many(rows, ids=names, traceparent=many)
        assert [answer.id for answer in answers] == names
        assert (await client.diagnose(PATIENT, id="one", traceparent=single)).id == "one"
        assert (await client.diagnose(PATIENT, id="none", traceparent="Anna")).id == "none"
        assert await client.diagnose_many([]) == []
    topics = Topics.of(load_settings(live))
    for topic in (topics.predictions, topics.diagnoses):
        headers = {record.key: record.headers for record in await committed(broker_address, topic)}
        assert {headers[name.encode()] for name in names} == {(("traceparent", many.encode()),)}
        assert headers[b"one"] == (("traceparent", single.encode()),)
        assert headers[b"none"] == ()


async def test_of_many_patients_all_are_published_or_none(file, broker_address):
    async with Publisher(file) as publisher:
        topics = Topics.of(publisher.settings)
        with pytest.raises(PatientError, match="patient 2 of 3: feature 'radius'"):
            await publisher.publish_many([PATIENT, {**PATIENT, "radius": True}, PATIENT])
        with pytest.raises(PatientError, match="there are 1 patients and 2 ids"):
            await publisher.publish_many([PATIENT], ids=["a", "b"])
        assert await committed(broker_address, topics.instances("imaging")) == []
        names = await publisher.publish_many([PATIENT] * 3)
    sent = await committed(broker_address, topics.instances("imaging"))
    assert sorted(record.key.decode() for record in sent) == sorted(names)


async def test_a_client_that_is_not_open_says_so(file):
    with pytest.raises(InputError, match=r"this Client is not open; .* with Client\("):
        Client(file).diagnose(PATIENT)
    for unopened in (AsyncClient(file), Publisher(file)):
        with pytest.raises(InputError, match=r"is not open; use it inside: async with "):
            await unopened.publish(PATIENT)
    with pytest.raises(InputError, match="this Diagnoses is not open"):
        await Diagnoses(file).of("a17")
    closed = AsyncClient(file)
    async with closed:
        pass
    with pytest.raises(InputError, match="this AsyncClient is not open"):
        await closed.label("a17", "benign")


def test_the_examples_of_the_docs(live, monkeypatch):
    """Run every Python example of docs/use.md beside the settings file of a running ensemble."""
    monkeypatch.chdir(live.parent)
    text = USE.read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "use.md", str(USE), 0)
    assert len(examples.examples) >= 5
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples).failed == 0


async def test_an_earlier_patients_diagnosis_does_not_answer_a_reused_id(live, broker_address):
    async with Publisher(live) as publisher, Diagnoses(live) as diagnoses:
        topic = Topics.of(publisher.settings).diagnoses
        first = await publisher.publish(PATIENT, id="reused")
        answer = await diagnoses.of(first)
        assert answer.id == "reused"
        second = await publisher.publish({**PATIENT, "radius": 9.9}, id="reused")
        assert await diagnoses.of(first) == answer
        with pytest.raises(ReusedIdError, match="an earlier patient had the same id"):
            await diagnoses.of(second, timeout=2.0)
        # A record on the topic that is not a diagnosis does not disturb those who wait.
        await produce(broker_address, topic, [b"no diagnosis", None])
        assert (await diagnoses.of(await publisher.publish(PATIENT))).label
        assert diagnoses.unreadable == 2


def test_answers_are_found_by_the_original_id_when_pseudonyms_travel(live, monkeypatch):
    monkeypatch.setenv("ID_KEY", "a key of the producer's")
    config = load_settings(live, ['privacy.id_key={env="ID_KEY"}'])
    with Client(config) as client:
        answer = client.diagnose(PATIENT, id="person-7-visit-1")
        client.label("person-7-visit-1", "malignant")
        assert answer.id == "person-7-visit-1"
    topics = Topics.of(config)
    for topic in (topics.instances("imaging"), topics.diagnoses, topics.labels):
        records = asyncio.run(committed(config.broker.bootstrap, topic))
        held = b"".join((record.key or b"") + (record.value or b"") for record in records)
        assert b"person-7-visit-1" not in held
        assert Pseudonyms(config).id("person-7-visit-1").encode() in held
