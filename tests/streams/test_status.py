"""`hb status` on a real broker: everything it shows can be counted on the topics."""

import asyncio
import time

import numpy as np
import orjson
import pytest
from engine_kit import PATIENCE, committed
from user_kit import ensemble, worker_process, write_settings

from agents.clients.sender import Sender
from agents.monitor.state_reader import StateReader
from agents.monitor.state_view import StateView
from agents.monitor.watch import Watch
from agents.totals import WAITING, EnsembleTotals
from learners.join import COUNTERS
from learners.scores.error_rates import confusion, rates
from settings.loading import load_settings
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared
from tests.cli_runs import Hb


@pytest.fixture
def hb(monkeypatch, capsys):
    return Hb(monkeypatch, capsys)


def patients(folder, count):
    lines = [
        {
            "patient": f"p{i}",
            "radius": 5 + 20 * (i % 2),
            "texture": (7 * i) % 40,
            "age": (11 * i) % 100,
            "site": "left" if i % 3 else "right",
            "truth": "malignant" if i % 2 else "benign",
        }
        for i in range(count)
    ]
    file = folder / "patients.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return file, {line["patient"]: line["truth"] for line in lines}


def records(address, topic):
    return [orjson.loads(record.value) for record in asyncio.run(committed(address, topic))]


def test_no_worker_runs(hb, tmp_path, broker_address, prefix, monkeypatch):
    ensemble(tmp_path, broker_address, prefix.strip("."), partitions=3)
    monkeypatch.chdir(tmp_path)
    file, _ = patients(tmp_path, 30)
    hb("produce", file, "--no-labels")
    run = hb("status", "--json")
    assert run.code == 1, "a task is held by nobody"
    assert run.json["lag"] == 60
    assert run.json["workers"] == []
    assert {task["holder"] for task in run.json["tasks"]} == {None}
    assert len(run.json["tasks"]) == 9
    shown = hb("status")
    assert "nobody" in shown.out
    assert hb("status", "--watch", "--json").code == 2


def test_missing_topics_are_named(hb, tmp_path, broker_address, monkeypatch):
    ensemble(tmp_path, broker_address, "there")
    monkeypatch.chdir(tmp_path)
    run = hb("status", "--set", "topics.prefix=nowhere.")
    assert run.code == 4
    assert "is missing; create it with: hb topics create" in run.err


@pytest.mark.parametrize("context", [False, True])
def test_what_is_shown_is_what_is_on_the_topics(
    hb, tmp_path, broker_address, prefix, monkeypatch, context
):
    file = ensemble(
        tmp_path, broker_address, prefix.strip("."), partitions=2 - context, context=context
    )
    monkeypatch.chdir(tmp_path)
    data, truth = patients(tmp_path, 120)
    topics = Topics.of(load_settings(file))
    with worker_process(file):
        assert hb("produce", data, "--rate", 200, "--missing", 0.25, "--seed", 1).code == 0
        hb("label", "p0=benign", "p0=benign")
        labels = {label["id"] for label in records(broker_address, topics.labels)}
        report = await_state(hb, 120, len(labels))
        assert hb("status").code == 0
    diagnoses = {case["id"]: case for case in records(broker_address, topics.diagnoses)}
    settled = sorted(diagnoses.keys() & labels)
    assert report["labelled"] == len(settled)
    assert report["waiting"] == 120 - len(settled)
    assert report["counts"]["label_duplicate"] in (1, 2)
    assert len(report["workers"]) == 1
    assert all(task["holder"] == report["workers"][0] for task in report["tasks"])
    names = ("benign", "malignant")
    real = [names.index(truth[name]) for name in settled]
    predicted = {
        "ensemble": [names.index(diagnoses[name]["label"]) for name in settled],
        **{
            learner: [names.index(diagnoses[n]["learners"][learner]["label"]) for n in settled]
            for learner in ("imaging", "history")
        },
    }
    for name, labels in predicted.items():
        expected = rates(confusion(np.array(real), np.array(labels), 2), positive=1)
        assert report["rates"][name]["per"] == pytest.approx(float(expected.per))
        assert report["rates"][name]["fnr"] == pytest.approx(float(expected.fnr))
        assert report["rates_of_last_1000"][name] == report["rates"][name]
    exploring = sum(case["learners"]["imaging"]["exploring"] for case in diagnoses.values())
    assert report["exploration"]["imaging"] == pytest.approx(exploring / 120)
    assert 0 <= report["regret"] <= report["regret_bound"]


def await_state(hb, diagnosed, settled):
    """Return the status once so many are diagnosed and settled and nothing is left to do."""
    deadline = time.monotonic() + PATIENCE
    while True:
        report = hb("status", "--json").json
        counts = report["counts"]
        diagnoses = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
        if (report["lag"], diagnoses, counts["settled"]) == (0, diagnosed, settled):
            return report
        assert time.monotonic() < deadline, report


async def produce(settings, topic, records):
    """Write keys and values to the first partition of a topic."""
    async with Sender(settings, [topic]) as sender:
        for batch in sender._batches(((key, value, ()) for key, value in records), 0):
            await sender._hand_over(batch, topic, 0)
        await sender.flush()


def test_state_is_found_however_far_back_it_is(tmp_path, broker_address, prefix):
    settings = load_settings(ensemble(tmp_path, broker_address, prefix.strip(".")))
    topic = Topics.of(settings).changelog("ensemble")
    view = StateView({topic: ("totals",)})
    key, row = b"totals/" + bytes(8), np.array([7]).tobytes()
    filler = [(b"pending/%d" % i, b"x") for i in range(6000)]

    def meta(position):
        return META_KEY, orjson.dumps({"positions": {"in": position}})

    async def write(*records):
        await produce(settings, topic, records)

    async def run():
        await write(meta(7), (key, row), *filler)
        async with StateReader(settings, view, [], {topic: (META_KEY, key)}) as reader:
            await reader.look()
            assert view.positions == {(topic, 0): {"in": 7}}
            assert view.sums(topic, "totals")[0].tolist() == [7]
            # What is new is found as well, wherever it is in what came since; the rest stays.
            await write(meta(8), *filler, meta(9), *filler)
            await reader.look()
            assert view.positions == {(topic, 0): {"in": 9}}
            assert view.sums(topic, "totals")[0].tolist() == [7]

    asyncio.run(run())


async def test_recreated_topics_are_read_again(tmp_path, broker_address, prefix):
    settings = load_settings(write_settings(tmp_path, broker_address, prefix.strip(".")))
    names = [topic.name for topic in declared(settings)]
    shared = Topics.of(settings).shared("ensemble")
    key = b"totals/" + bytes(8)

    def totals(settled):
        counts = dict.fromkeys(COUNTERS, 0) | {"settled": settled}
        return EnsembleTotals.of(counts, dict.fromkeys(WAITING, 0), np.zeros(3, np.int64)).row

    async def written(settled, times):
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))
        await produce(settings, shared, [(key, totals(settled).tobytes())] * times)

    await written(settled=7, times=30)
    async with Watch(settings) as watch:
        assert (await watch.refresh(0)).counts["settled"] == 7
        async with admin_client(settings.broker) as admin:
            await admin.delete_topics(names)
            while set(names) & {t["topic"] for t in await admin.describe_topics()}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # a broker does not announce that a topic is gone
        await written(settled=3, times=2)
        assert (await watch.refresh(0)).counts["settled"] == 3
