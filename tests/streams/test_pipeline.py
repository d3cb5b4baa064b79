"""The whole pipeline on a real broker: patients in, diagnoses out, labels late, learned once."""

import pytest
from engine_kit import until
from pipeline_kit import (
    arrive,
    await_count,
    create_topics,
    dead_letters,
    label,
    patients,
    read,
    running,
    settings,
)

from streams.kafka.topics import Topics


@pytest.fixture
async def config(broker_address, prefix, tmp_path):
    local = settings(tmp_path, broker_address, prefix.strip(".-_") or "t")
    await create_topics(local)
    return local


async def test_patients_are_diagnosed_and_labels_learned(config):
    topics = Topics.of(config)
    ids, features, truth = patients(600)
    async with running(config) as app:
        for start in range(0, 600, 150):
            part = slice(start, start + 150)
            await arrive(config, ids[part], {k: v[part] for k, v in features.items()})
            await await_count(config, topics.diagnoses, start + 150)
            await label(config, ids[part], truth[part])
            await await_count(config, topics.feedback("a"), start + 150)
        await until(lambda: not app.engine.trouble())
        for name in config.learners:
            await await_count(config, topics.feedback(name), 600)
    diagnoses = await read(config, topics.diagnoses)
    assert sorted(d["id"] for d in diagnoses) == sorted(ids)
    assert all(d["complete"] and d["missing"] == [] for d in diagnoses)
    assert all(set(d["learners"]) == {"a", "b", "c"} for d in diagnoses)
    assert all(abs(sum(d["weights"].values()) - 1) < 1e-5 for d in diagnoses)
    right = dict(zip(ids, truth, strict=True))
    late = diagnoses[-150:]
    assert sum(d["label"] == right[d["id"]] for d in late) > 0.85 * 150
    assert await dead_letters(config) == []
