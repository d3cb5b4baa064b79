"""Settings that change under state, and two ensembles on one prefix: refused before any harm."""

import asyncio

import pytest
from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_count,
    create_topics,
    label,
    patients,
    publish,
    running,
    settings,
)

from agents.stored_state import check_stored
from agents.worker import Worker
from audit import audit
from settings.errors import SettingsError
from settings.loading import load_settings
from streams.kafka.topics import Topics

N = 60
ILL_FIRST = 'labels=["malignant", "benign"]'
WIDER = '[{name = "x", low = 0.0, high = 2.0}, {name = "y", low = 0.0, high = 1.0}]'
REVERSED = '[{name = "y", low = 0.0, high = 1.0}, {name = "x", low = 0.0, high = 1.0}]'
CHANGES = {
    ILL_FIRST: "labels changed",
    'positive="benign"': "positive changed",
    f"learners.a.features={WIDER}": "learners.a.features changed",
    f"learners.a.features={REVERSED}": "learners.a.features changed",
    "learners.a.cuts=3": "learners.a.cuts changed",
    "learners.a.doubling=100": "learners.a.doubling changed",
    'learners.a.feedback="full"': "learners.a.feedback changed",
    'learners.c.rules.lr={kind = "logistic"}': "learners.c.rules.lr changed",
    'ensemble.mode="majority"': "ensemble.mode changed",
    "ensemble.active=true": "ensemble.active changed",
}


async def taught(config, ids, features, truth):
    await create_topics(config)
    async with running(config):
        await arrive(config, ids, features)
        await label(config, ids, truth)
        await await_count(config, Topics.of(config).feedback("a"), len(ids))


async def refused(config):
    """Return why a worker refuses to start."""
    with pytest.raises(SettingsError) as error:
        async with asyncio.timeout(PATIENCE):
            await Worker(config).run()
    return str(error.value)


async def test_settings_that_would_misread_the_state_are_refused_at_the_start(
    broker_address, prefix, tmp_path
):
    name = prefix.strip(".")
    ids, features, truth = patients(N)
    config = settings(tmp_path, broker_address, name)
    await taught(config, ids, features, truth)
    file = tmp_path / "ensemble.toml"
    for change, sentence in CHANGES.items():
        refusal = await refused(load_settings(file, [change]))
        assert f"other settings: {sentence}," in refusal
        assert "undo the change" in refusal
    # Learners in another order, and a rule less.
    text = file.read_text()
    a, b, c = (text.index(f"[learners.{learner}]") for learner in "abc")
    file.write_text(text[:a] + text[b:c] + text[a:b] + text[c:])
    assert "learners changed" in await refused(load_settings(file))
    less = [line for line in text.splitlines() if not line.startswith("rules.benign")]
    file.write_text("\n".join(less))
    assert "settings: learners.c.rules, learners.c.rules.benign changed" in await refused(
        load_settings(file)
    )
    file.write_text(text)
    with pytest.raises(SettingsError, match="cuts changed"):
        await check_stored(load_settings(file, ["learners.a.cuts=3"]))
    # The audit does not compare what cannot be compared, and says so.
    report = await audit(load_settings(file, ["learners.a.cuts=3"]))
    assert [finding.what for finding in report.findings.list()] == [
        "setting learners.a",
        "setting learners.a.cuts",
    ]
    assert (await audit(config)).findings.clean
    # What may change does: the next patients are diagnosed.
    free = ["defaults.exploration=0.5", 'ensemble.label_ttl="2h"', "ensemble.eta_scale=2.0"]
    newcomers = [f"n{patient}" for patient in ids]
    relaxed = load_settings(file, free)
    async with running(relaxed):
        await arrive(relaxed, newcomers, features)
        await await_count(relaxed, Topics.of(relaxed).diagnoses, 2 * N)


async def test_a_second_ensemble_on_the_same_prefix_is_refused_and_disturbs_nobody(
    broker_address, prefix, tmp_path
):
    name = prefix.strip(".")
    ids, features, truth = patients(N)
    (tmp_path / "rival").mkdir()
    config = settings(tmp_path, broker_address, name)
    rival = settings(tmp_path / "rival", broker_address, "rival", f'topics.prefix="{name}."')
    twin = settings(tmp_path / "rival", broker_address, name, "learners.b.cuts=3")
    topics = Topics.of(config)
    await create_topics(config)
    async with running(config) as app:
        await arrive(config, ids, features)
        await await_count(config, topics.diagnoses, N)
        assert f"belongs to the ensemble {name}" in await refused(rival)
        assert "learners.b.cuts changed" in await refused(twin)
        await label(config, ids, truth)
        await await_count(config, topics.feedback("a"), N)
        await publish(broker_address, topics.labels, [("x", b"{")])
        assert all(status.reopenings == 0 for status in app.engine.statuses())
    report = await audit(rival)
    assert {finding.what for finding in report.findings.list()} == {"owner of the state"}
