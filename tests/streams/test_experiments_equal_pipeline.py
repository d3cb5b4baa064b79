"""What experiments compute is what the running pipeline says, patient by patient."""

from dataclasses import replace

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer
from engine_kit import until
from pipeline_kit import create_topics, read, running

from experiments.paper.parallel_runs import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.protocol import make_runs
from experiments.single_pass.fused_passes import fuse
from experiments.single_pass.local_passes import Task, listen
from experiments.single_pass.methods import OURS, PROPOSED, RECIPES
from learners.arrays.types import MISSING
from learners.fusion.registry import make_fusion
from schemas.writing import encode
from settings.loading import load_settings
from streams.kafka.topics import Topics
from tests import passes_as_records as pass_form
from tests import runs_as_records as paper_form

PATIENTS, SEED, H = 30, 12, 2.5


def paper_run():
    """A run of the paper's protocol: its settings, its records, and what the parallel runs say."""
    settings = LocalSettings()
    runs = make_runs(2, steps=PATIENTS, seed=SEED)
    votes = simulate_learners(runs, settings, np.array([H]))
    fused = simulate_fusion(lambda c: make_fusion("ah", 3, 2, cubes=c, prefer=1), runs, votes)
    text = paper_form.settings_text(runs, 1, settings, H, "ah")
    records = zip(
        paper_form.instances(runs, SEED, 1), paper_form.labels(runs, SEED, 1), strict=True
    )
    return text, list(records), votes.labels[:, 0, 1], fused.labels[:, 0, 1]


def single_pass():
    """A single pass of the proposed method, whose learners learn jointly."""
    method = OURS[PROPOSED]
    task = Task("wdbc", SEED, 0, RECIPES[method.recipe])
    heard, order = listen(task), task.order()
    cut = replace(order, patients=order.patients[:PATIENTS], seeds=order.seeds[:PATIENTS])
    cut = replace(cut, told=order.told[:PATIENTS])
    first = type(heard)(*(part[:PATIENTS] for part in vars(heard).values()))
    fused = fuse(method.maker(3, 2, 1), [first], [cut])
    records = list(pass_form.records(task))[:PATIENTS]
    return pass_form.settings_text(task, method), records, first.labels, fused.labels[:, 0]


def learned(app, config):
    """Return how many labels the slowest local learner has taken in."""
    tasks = [app.engine.tasks.get((f"local.{name}", 0)) for name in config.learners]
    sessions = [task.session if task else None for task in tasks]
    return min(session._processor.learner.iup.labelled if session else 0 for session in sessions)


async def stream(config, app, records):
    """Let the patients come one by one; the next one comes when the label was learned from."""
    topics = Topics.of(config)
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        for n, (sent, label) in enumerate(records, 1):
            key = label.id.encode()
            for name, instance in sent.items():
                await producer.send(topics.instances(name), encode(instance), key=key)
            await producer.send(topics.labels, encode(label), key=key)
            await until(lambda n=n: learned(app, config) == n)


@pytest.mark.parametrize("experiment", [paper_run, single_pass], ids=["paper", "single pass"])
async def test_the_pipeline_says_what_the_experiment_says(
    broker_address, prefix, tmp_path, experiment
):
    text, records, votes, fused = experiment()
    file = tmp_path / "ensemble.toml"
    file.write_text(text)
    config = load_settings(
        file,
        [
            f"name={prefix.strip('.')}",
            f"broker.bootstrap={broker_address}",
            f"worker.state={tmp_path / 'state'}",
            "worker.web_port=0",
        ],
    )
    await create_topics(config)
    async with running(config) as app:
        await stream(config, app, records)
    labels = list(config.labels)
    predictions = await read(config, f"{prefix}predictions")
    spoken = {(record["learner"], record["id"]): record["label"] for record in predictions}
    diagnosed = {
        record["id"]: record["label"] for record in await read(config, f"{prefix}diagnoses")
    }
    ids = [label.id for _, label in records]
    assert [labels.index(diagnosed[patient]) for patient in ids] == fused.tolist()
    for i, name in enumerate(config.learners):
        words = [spoken[name, patient] for patient in ids]
        indices = [MISSING if label is None else labels.index(label) for label in words]
        assert indices == votes[:, i].tolist()
