"""What a worker knows to be wrong with its tasks is shown wherever the system is shown."""

import asyncio
import json
import subprocess

from pipeline_kit import arrive, create_topics, patients, running, settings
from user_kit import HB

from agents.ensemble_learner import EnsembleProcessor
from agents.monitor.system_health import system_verdict
from agents.monitor.watch import look
from streams.engine.health import Cause


def hb_status(folder, *options):
    command = [*HB, "status", "--settings", str(folder / "ensemble.toml"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)


async def eventually(config, cause):
    async with asyncio.timeout(90):
        while (verdict := system_verdict(await look(config))).cause is not cause:  # noqa: ASYNC110 - asked for
            await asyncio.sleep(0.2)
    return verdict


async def test_a_failed_task_is_named_everywhere_until_it_is_well(
    broker_address, prefix, tmp_path, monkeypatch
):
    config = settings(tmp_path, broker_address, prefix.strip("."))
    await create_topics(config)
    assert (await eventually(config, Cause.NO_WORKER)).text == "no worker runs"
    names, features, _ = patients(5)

    def fail(*_arguments):
        raise RuntimeError("a bug")

    async with running(config) as app:
        await eventually(config, None)
        with monkeypatch.context() as broken:
            broken.setattr(EnsembleProcessor, "process", fail)
            await arrive(config, names, features)
            verdict = await eventually(config, Cause.TASK_FAILED)
        assert verdict.text == app.engine.verdict().text
        assert verdict.text.startswith("task ensemble/0 is failed: RuntimeError in agent ensemble")
        run = await asyncio.to_thread(hb_status, tmp_path)
        assert run.returncode == 1
        assert run.stdout.startswith("Degraded because task ensemble/0 is failed: RuntimeError")
        report = json.loads((await asyncio.to_thread(hb_status, tmp_path, "--json")).stdout)
        assert report["verdict"]["text"] == verdict.text
        failed = [task["agent"] for task in report["tasks"] if task["trouble"]]
        assert failed == ["ensemble"]
    # The next worker has no bug, and what the last one wrote beside the offsets is overwritten.
    async with running(config):
        await eventually(config, None)
