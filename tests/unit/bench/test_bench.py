"""Benchmarks measure what they say they measure; how fast, no test can say."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import numpy as np
import pytest

from bench import agents, pending
from bench.monitoring.cost import ALONE, COUNTING, WATCHED
from bench.monitoring.counting_worker import PIPELINE, WATCHING, Account, Companion, Timed
from bench.pipeline.benchmark import RIVALS, steps
from bench.pipeline.job import LEARNERS, outputs, patients, write_settings
from bench.pipeline.peers.plain_faust import choose, diagnosis
from bench.pipeline.peers.raw_relay import Relay
from schemas.reading import LabelReader
from schemas.rows import Feature, RowReader
from settings.errors import InputError
from streams.engine.observer import Observer
from streams.kafka.topics import Topics
from tests.cli_runs import Hb


@pytest.mark.parametrize("random", [False, True])
def test_as_many_wait_after_a_round_as_before_and_every_label_settles(tmp_path, random):
    settings = write_settings(tmp_path, "localhost:9", "t")
    site = pending.Site(settings, tmp_path / "s", np.random.default_rng(1))
    site.fill(2_000)
    assert site.round(random) > 0
    counts = site.counts
    labelled = pending.BATCH * pending.BATCHES
    assert counts["pending"] == 2_000
    assert counts["diagnosed_complete"] == 2_000 + labelled
    assert counts["settled"] == counts["label_matched"] == labelled
    assert site.bytes > 100 * labelled  # each is written down while it waits, and when it is over
    site.close()


def test_a_report_names_the_cost():
    report = pending.run(1, 1, lambda: None, many=1_500)
    figures = report["figures"]
    assert figures["pending_cost"] == max(figures["cost_in_order"], figures["cost_random"]) > 0


def test_what_a_patient_costs_is_compared_with_another_checkout():
    here = Path(agents.__file__).parents[1]
    report = agents.run(1, True, here, 1, lambda: None)
    figures = report["figures"]
    parts = [figures[f"ours.local.{learner}_microseconds"] for learner in LEARNERS]
    together = sum(parts) + figures["ours.ensemble_microseconds"]
    assert figures["ours.all_microseconds"] == pytest.approx(together)
    assert report["ratios"]["against"] == report["ratios_of_rounds"]["against"][0] > 0


def test_alone_it_has_figures_and_nothing_to_compare(capsys, monkeypatch):
    shown = Hb(monkeypatch, capsys)("bench", "agents", "--quick")
    assert (shown.code, "ours.all_microseconds" in shown.out) == (0, True)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(InputError, match="no checkout"):
        agents.run(1, True, tmp_path, 1, lambda: None)


def test_the_patients_of_the_job_can_be_read_and_differ_with_the_seed(tmp_path):
    settings = write_settings(tmp_path, "localhost:9", "t")
    job, reseeded = (patients(settings, 50, seed, 1_000) for seed in (1, 2))
    assert job.keys != reseeded.keys
    assert not LabelReader(settings.labels).read(job.labels).errors
    for topic, values in job.instances.items():
        learner = settings.learners[topic.rsplit(".", 1)[1]]
        reader = RowReader([Feature(feature.name) for feature in learner.features])
        assert not reader.read(values).errors
    assert len(set(job.labels)) == 50


class Producer:
    """Notes what would be sent."""

    def __init__(self):
        self.sent = {}

    def create_batch(self):
        return self

    def append(self, timestamp, key, value):
        self.key = key
        self.count = getattr(self, "count", 0) + 1
        return True

    async def send_batch(self, batch, topic, partition):
        self.sent[topic] = self.sent.get(topic, 0) + self.count
        self.count = 0
        return topic


class Record:
    key, value = b"k", b"v"


async def test_the_relay_moves_what_the_pipeline_moves(tmp_path):
    topics = Topics.of(write_settings(tmp_path, "localhost:9", "t"))
    producer = Producer()
    relay = Relay(topics, producer)
    for name in topics.learners:
        await relay.move(topics.instances(name), [Record] * 7)
    for size in (4, 1, 1, 15):
        await relay.move(topics.predictions, [Record] * size)
    await relay.move(topics.labels, [Record] * 7)
    for name in topics.learners:
        assert await relay.move(topics.feedback(name), [Record] * 7) is None
    assert producer.sent == {topics.predictions: 21, **dict.fromkeys(outputs(topics), 7)}


def test_the_faust_agents_decide_as_the_paper_does():
    assert choose([0, 5, 0, 5]) == (0, True)  # never tried: explored first
    assert choose([10, 10, 9, 2]) == (0, False)
    predictions = {
        name: {"id": "a", "label": label, "at": 1}
        for name, label in zip(
            ("imaging", "cytology", "history"), ("benign", "benign", "malignant"), strict=True
        )
    }
    assert diagnosis(predictions, [0, 0, 0, 0]).label == "benign"
    assert diagnosis(predictions, [500, 200, 200, 0]).label == "malignant"


def test_who_takes_part():
    assert [rival.name for rival in RIVALS] == ["ours", "raw_relay", "plain_faust"]
    assert [side.pages for side in (ALONE, WATCHED, COUNTING)] == [0, 1, 1]
    every = 1 + 2 * len(RIVALS)  # the first run is not counted
    assert steps(2, False, False) == every < steps(2, True, True) < steps(2, False, True)


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Burning(AbstractAsyncContextManager):
    """Works now and then from its start to its end."""

    async def __aenter__(self):
        self.task = asyncio.create_task(self.work())

    async def __aexit__(self, *_):
        self.task.cancel()

    async def work(self):
        for _ in range(5):
            await asyncio.sleep(0.001)
            burn(0.01)


def test_time_is_counted_for_whom_it_was_spent(monkeypatch):
    monkeypatch.setattr(asyncio.Handle, "_run", asyncio.Handle._run)
    account = Account()
    account.install()
    listener = Observer()
    listener.committed = lambda _: burn(0.03)
    observer = Timed(account, listener)

    async def pipeline():
        async with Companion(Burning()):
            for _ in range(5):
                burn(0.04)
                await asyncio.sleep(0.005)
            observer.committed(None)

    asyncio.run(pipeline())
    assert account.seconds[WATCHING] == pytest.approx(0.08, abs=0.02)
    assert account.seconds[PIPELINE] == pytest.approx(0.2, abs=0.03)
