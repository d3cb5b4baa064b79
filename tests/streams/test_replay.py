"""`hb replay` on a real broker: what was live comes out again, and other settings beside it."""

import asyncio

import pytest
from pipeline_kit import arrive, await_count, create_topics, label, patients, running, settings

from streams.kafka.topics import Topics
from tests.cli_runs import Hb

N = 24


@pytest.fixture
def hb(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    return Hb(monkeypatch, capsys)


async def one_by_one(config):
    """Diagnose, label and learn the first patients one by one, then many at once."""
    ids, features, truth = patients(200)
    async with running(config):
        for k in range(N):
            part = slice(k, k + 1)
            await arrive(config, ids[part], {name: x[part] for name, x in features.items()})
            await await_count(config, Topics.of(config).diagnoses, k + 1)
            await label(config, ids[part], truth[part])
            for name in config.learners:
                await await_count(config, Topics.of(config).feedback(name), k + 1)
        remaining = {name: x[N:] for name, x in features.items()}
        await arrive(config, ids[N:], remaining)
        await await_count(config, Topics.of(config).diagnoses, 200)
        await label(config, ids[N:], truth[N:])
        await await_count(config, Topics.of(config).feedback("a"), 200)


def test_unchanged_settings_agree_with_what_was_live(broker_address, prefix, tmp_path, hb):
    config = settings(tmp_path, broker_address, prefix.strip(".-_"))
    asyncio.run(create_topics(config))
    asyncio.run(one_by_one(config))
    file = tmp_path / "ensemble.toml"
    run = hb("replay", "--settings", file, "--json")
    assert run.code == 0
    figures = run.json["figures"]
    assert figures["agreement"] == figures["unchanged_agreement"] == 1.0
    assert figures["compared"] == 200
    assert figures["live"] == figures["replay"] == figures["unchanged"]
    # Settings that were never live.
    run = hb("replay", "--settings", file, "--set", "ensemble.mode=ah", "--json")
    changed = run.json["figures"]
    assert changed["live"] == changed["unchanged"] == figures["live"]
    assert changed["replay"]["labelled"] == 200
    assert changed["replay"]["regret"] < changed["replay"]["regret_bound"]
    assert changed["replay"]["rates"]["a"] == figures["replay"]["rates"]["a"]
    run = hb("replay", "--settings", file, "--set", "defaults.exploration=1.0")
    assert run.code == 0
    assert "diagnoses that agree with the live ones: 100.0 % unchanged, " in run.out
    assert "ensemble" in run.out
