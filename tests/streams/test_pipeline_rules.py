"""Join rules and bad input through the whole pipeline."""

import asyncio
import itertools
import random
import time

import pytest
from engine_kit import PATIENCE, until
from pipeline_kit import (
    arrive,
    await_count,
    await_letters,
    await_raw,
    create_topics,
    dead_letters,
    label,
    patients,
    publish,
    read,
    running,
    settings,
)

from agents.monitor.watch import look
from audit.end_to_end import audit
from streams.kafka.topics import Topics


@pytest.fixture
def build(broker_address, prefix, tmp_path):
    async def made(*overrides):
        config = settings(tmp_path, broker_address, prefix.strip("."), *overrides)
        await create_topics(config)
        return config, Topics.of(config)

    return made


async def predicted(config, ids, features, *learners):
    """Let learners predict for patients who all come at one time, and return that time.

    The ensemble learner can then be started with all that it is to wait for on its topics, so that
    no time-out depends on how fast the machine is.
    """
    now = time.time_ns() // 1_000_000
    async with running(config, *(f"local:{name}" for name in learners)):
        await arrive(config, ids, features, [now] * len(ids))
        await await_raw(config, Topics.of(config).predictions, len(ids) * len(learners))
    return now


async def test_a_silent_learner_does_not_hold_up_the_diagnosis(build):
    config, topics = await build("ensemble.fusion_timeout=1s")
    ids, features, truth = patients(20)
    await predicted(config, ids, features, "a", "c")
    async with running(config, "ensemble"):
        diagnoses = await await_count(config, topics.diagnoses, 20)
        assert {(d["complete"], tuple(d["missing"])) for d in diagnoses} == {(False, ("b",))}
        assert all(set(d["weights"]) == {"a", "b", "c"} for d in diagnoses)
        assert all(d["weights"]["b"] == 0 for d in diagnoses)
        await label(config, ids, truth)
        await await_count(config, topics.feedback("a"), 20)
        # What it says after the diagnosis and after the label no longer counts.
    assert await read(config, topics.feedback("b")) == []


async def test_labels_early_twice_in_conflict_and_for_nobody(build):
    config, topics = await build("ensemble.label_ttl=120s")
    ids, features, truth = patients(30)
    opposite = {"benign": "malignant", "malignant": "benign"}
    async with running(config) as app:
        await label(config, ids[:10], truth[:10])
        await arrive(config, ids, features)
        await await_count(config, topics.diagnoses, 30)
        await label(config, ids[10:], truth[10:])
        await await_count(config, topics.feedback("a"), 30)
        await label(config, ids[:5], truth[:5])
        await label(config, ids[5:9], [opposite[y] for y in truth[5:9]])
        dead = await await_count(config, topics.deadletter, 4)
        assert len(dead) == 4
        ledger = app.engine.tasks["ensemble", 0].session._processor.learner.ledger
        assert ledger.counts["label_duplicate"] == 5
        assert ledger.counts["label_conflict"] == 4
        assert ledger.counts["settled"] == 30
    assert len(await read(config, topics.feedback("b"))) == 30


BAD = [
    b"",
    b"{",
    b"[]",
    b'{"v":1}',
    b'{"v":9,"id":"q","x":[1,2],"label":"benign","at":1}',
    b'{"v":1,"id":"","x":[0.1,0.2],"label":"benign","at":1}',
    b'{"v":1,"id":"q","x":[NaN,0.2],"label":"other","at":1}',
    b'{"v":1,"id":"q","x":[1e999,0.2],"label":7,"at":1}',
    b'{"v":1,"id":"q","x":["a",0.2,9,9],"label":null,"at":1}',
    b"\xff\xfe",
    b"x" * 300_000,
]


async def test_a_poison_storm_harms_nobody(build):
    """A tenth of the records on every topic is bad: all good ones are diagnosed, all bad named."""
    config, topics = await build()
    ids, features, truth = patients(400)
    rng = random.Random(3)
    bad_per_topic = 40
    async with running(config) as app:
        for name in config.learners:
            poison = [(f"bad{i}", rng.choice(BAD)) for i in range(bad_per_topic)]
            await publish(config.broker.bootstrap, topics.instances(name), poison)
            await publish(config.broker.bootstrap, topics.feedback(name), poison)
        for topic in (topics.predictions, topics.labels):
            poison = [(f"bad{i}", rng.choice(BAD)) for i in range(bad_per_topic)]
            await publish(config.broker.bootstrap, topic, poison)
        await arrive(config, ids, features)
        await await_count(config, topics.diagnoses, 400)
        await label(config, ids, truth)
        for name in config.learners:
            await await_raw(config, topics.feedback(name), 400 + bad_per_topic)
        expected = bad_per_topic * (2 * len(config.learners) + 2)
        dead = await await_letters(config, expected)
        await until(lambda: not app.engine.trouble())
        assert len(dead) == expected
        for name in config.learners:
            of_learner = [r for r in dead if r.topic == topics.deadletter_of(name)]
            refused_by = {dict(r.headers)["hb-topic"].decode() for r in of_learner}
            assert refused_by == {topics.instances(name), topics.feedback(name)}
            assert len(of_learner) == 2 * bad_per_topic
        assert all(status.reopenings == 0 for status in app.engine.statuses())
    reasons = {dict(record.headers)["hb-reason"] for record in dead}
    assert {b"empty", b"malformed", b"wrong_version", b"bad_id", b"too_large"} <= reasons
    assert {record.value for record in dead} <= set(BAD), "as they came"
    good = await read(config, topics.diagnoses)
    assert sorted(d["id"] for d in good) == sorted(ids)


async def test_records_of_our_own_topics_are_not_trusted_either(build):
    """Feedback about cubes that do not exist, and log-odds of the wrong length, do no harm."""
    config, topics = await build()
    ids, features, truth = patients(30)
    feedback = {"v": 1, "id": "q", "label": "benign", "predicted": "benign", "rule": "benign"}
    wrong = [{"phase": 9, "cube": "0"}, {"phase": 1, "cube": "4"}, {"phase": 1, "cube": "0"}]
    wrong[2]["predicted"] = "other"
    wrong.append({"phase": 1, "cube": "0", "others": [1.0, 2.0, 3.0]})
    prediction = {
        "v": 1, "id": "q", "learner": "a", "label": "benign", "phase": 1, "cube": "0",
        "rule": "benign", "exploring": False, "trials": 0, "at": 5, "log_odds": [1.0, 2.0, 3.0],
    }  # fmt: skip
    async with running(config) as app:
        records = [("q", {**feedback, "at": 5, **flaw}) for flaw in wrong]
        await publish(config.broker.bootstrap, topics.feedback("a"), records)
        await publish(config.broker.bootstrap, topics.predictions, [("q", prediction)])
        await arrive(config, ids, features)
        await label(config, ids, truth)
        await await_count(config, topics.feedback("a"), 34)
        dead = await await_letters(config, 5)
        assert all(status.reopenings == 0 for status in app.engine.statuses())
    reasons = sorted(dict(record.headers)["hb-reason"].decode() for record in dead)
    assert reasons == [*["out_of_range"] * 2, "unknown_label", *["wrong_dimension"] * 2]


async def test_a_contextual_ensemble_learner_waits_for_the_context(build):
    config, topics = await build(
        "ensemble.mode=ch-vote",
        'ensemble.context={cuts=2,features=[{name="y",low=0.0,high=1.0}]}',
        "ensemble.fusion_timeout=1s",
    )
    ids, features, truth = patients(40)
    at = await predicted(config, ids, features, *config.learners)
    contexts = [
        (patient, {"v": 1, "id": patient, "x": [y], "at": 5})
        for patient, y in zip(ids[:30], features["y"].tolist(), strict=False)
    ]
    await publish(config.broker.bootstrap, topics.contexts, contexts, itertools.repeat(at))
    async with running(config, "ensemble") as app:
        diagnoses = await await_count(config, topics.diagnoses, 40)
        complete = {d["id"] for d in diagnoses if d["complete"]}
        assert complete == set(ids[:30])
        await label(config, ids, truth)
        await await_count(config, topics.feedback("a"), 40)
        learner = app.engine.tasks["ensemble", 0].session._processor.learner
        cells, rows = learner.fusion.tables()["losses"].items()
        assert rows[:, 0].sum() == 40
        assert dict(zip(cells.tolist(), rows[:, 0].tolist(), strict=True))[2] == 10


async def test_a_worker_that_stops_and_starts_goes_on_exactly(build):
    """Stopping and starting at any moment changes neither outputs nor tables."""
    config, topics = await build()
    ids, features, truth = patients(300)
    for k in range(3):
        part = slice(k * 100, (k + 1) * 100)
        async with running(config):
            await arrive(config, ids[part], {f: v[part] for f, v in features.items()})
            await label(config, ids[part], truth[part])
    async with running(config) as app:
        for name in config.learners:
            await await_count(config, topics.feedback(name), 300)
            key = f"local.{name}", 0
            await until(
                lambda key=key: app.engine.tasks[key].session._processor.learner.iup.labelled == 300
            )
            await app.engine.tasks[key].session.flush()
        tables = {
            name: app.engine.tasks[f"local.{name}", 0].session._processor._counts.items()[1]
            for name in config.learners
        }
    assert tables["a"][:, :2].sum() == 300, "bandit: one trial per label"
    assert tables["b"][:, :2].sum() == 600, "full: one trial per label and rule"
    assert len({d["id"] for d in await read(config, topics.diagnoses)}) == 300
    assert len(await read(config, topics.diagnoses)) == 300


DAY = 86_400_000


async def test_labels_from_at_once_to_days_late_settle_once_or_expire(build):
    """A backlog of days: half the labels never come, the others in reverse, some too late."""
    config, topics = await build("ensemble.label_ttl=3d", "ensemble.fusion_timeout=1s")
    n = 400
    ids, features, truth = patients(n)
    begin = time.time_ns() // 1_000_000 - 6 * DAY
    # Patients come in the first hour, each second one is labelled; the last first.
    seen_at = [begin + k * 9_000 for k in range(n)]
    labelled = list(range(n - 1, -1, -2))
    delays = [round(5 * DAY * k / len(labelled)) for k in range(len(labelled))]
    told_at = [seen_at[-1] + delay for delay in delays]
    await arrive(config, ids, features, seen_at)
    await label(config, [ids[k] for k in labelled], [truth[k] for k in labelled], told_at)
    late = {ids[k] for k, at in zip(labelled, told_at, strict=True) if at - seen_at[k] >= 3 * DAY}
    in_time = {ids[k] for k in labelled} - late
    assert 50 < len(late) < len(in_time)
    async with running(config):
        dead = await await_count(config, topics.deadletter, len(late))
        diagnoses = await await_count(config, topics.diagnoses, n)
        for name in config.learners:
            feedback = await await_count(config, topics.feedback(name), len(in_time))
            assert sorted(lesson["id"] for lesson in feedback) == sorted(in_time)
        await until_async(lambda: counted(config, "expired", n - len(in_time)))
    assert all(diagnosis["complete"] for diagnosis in diagnoses), (
        "a learner that is ahead makes nobody late"
    )
    assert sorted(diagnosis["id"] for diagnosis in diagnoses) == sorted(ids)
    assert {letter["id"] for letter in dead} == late
    report = await audit(config)
    figures = report.figures()
    assert [figures[name] for name in ("lost", "double", "differing")] == [0, 0, 0]
    assert figures["labels_settled"] == len(in_time)


async def test_old_labels_wait_for_learners_that_come_later(build):
    config, topics = await build()
    ids, features, truth = patients(50)
    old = [time.time_ns() // 1_000_000 - 600_000 + k for k in range(50)]
    await arrive(config, ids, features, old)
    await label(config, ids, truth, old)
    async with running(config, "ensemble"):
        await until_async(lambda: counted(config, "label_parked", 50))
        async with running(config, "local:a", "local:b", "local:c"):
            feedback = await await_count(config, topics.feedback("a"), 50)
    assert sorted(lesson["id"] for lesson in feedback) == ids
    assert await dead_letters(config) == []


async def counted(config, name, wanted):
    return (await look(config)).counts[name] >= wanted


async def until_async(condition, seconds=PATIENCE):
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - nobody tells when a label expires
            await asyncio.sleep(0.2)
