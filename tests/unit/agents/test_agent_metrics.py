"""Metrics of the agents: what they note is what they did, and is counted with the commit."""

import time

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from agents.agent_metrics import (
    ARRIVED,
    COMPLETE,
    DELAYS,
    INCOMPLETE,
    READ,
    SAID,
    PipelineObserver,
)
from agents.testing import Sent
from streams.engine.measurements import Notes
from streams.engine.observer import Committed
from tests.inline_pipeline import configured, lived
from tests.unit.streams.test_engine_metrics import samples


def committed(agent, notes):
    return Committed(agent, 0, 1, 1, {}, {}, 0.1, 0.1, notes)


@pytest.fixture
def observed():
    registry = CollectorRegistry()
    return registry, PipelineObserver(registry)


def test_counts_add_up(observed):
    registry, observer = observed
    for read, spoken in ((3, 2), (1, 1)):
        notes = Notes()
        notes.count(READ, read)
        notes.count(SAID, spoken)
        observer.committed(committed("local.a", notes))
    notes = Notes()
    notes.count(COMPLETE, 5)
    notes.count(INCOMPLETE, 1)
    observer.committed(committed("ensemble", notes))
    observer.committed(committed("ensemble", Notes()))
    assert samples(registry, "hb_instances_total") == {("a",): 4}
    assert samples(registry, "hb_predictions_total") == {("a",): 3}
    assert samples(registry, "hb_diagnoses_total") == {("true",): 5, ("false",): 1}


def test_times_are_seconds(observed):
    registry, observer = observed
    notes, now = Notes(), 1000 * time.time()
    notes.observe(DELAYS, np.array([500, 1500]))
    notes.observe(DELAYS, np.array([10_000]))
    notes.observe(ARRIVED, np.array([now - 4000, now + 60_000], np.int64))
    observer.committed(committed("ensemble", notes))
    assert samples(registry, "hb_label_delay_seconds_sum") == {(): 12}
    assert samples(registry, "hb_label_delay_seconds_count") == {(): 3}
    assert samples(registry, "hb_end_to_end_seconds_sum") == {(): pytest.approx(4, abs=1)}
    assert samples(registry, "hb_end_to_end_seconds_bucket")[("0.001",)] == 1, "never below 0"


def test_agents_note_what_they_do(tmp_path, monkeypatch):
    notes = []
    original = Sent.__init__

    def noted(self, deadletters):
        original(self, deadletters)
        notes.append(self.notes)

    monkeypatch.setattr(Sent, "__init__", noted)
    live = lived(configured(tmp_path), 20, lag=3)
    live.publish(live.topics.instances("a"), b"", b"{", at=2_000_000)
    counts, values = {}, {}
    for note in notes:
        for name, amount in note.counts.items():
            counts[name] = counts.get(name, 0) + amount
        for name, parts in note.values.items():
            values.setdefault(name, []).extend(np.concatenate(parts).tolist())
    assert counts == {READ: 41, SAID: 40, COMPLETE: 20, INCOMPLETE: 0}
    # Patients come every 10 ms; a label comes with the third after, 5 ms late.
    assert values[ARRIVED] == [1_000_000 + 10 * k for k in range(20)]
    assert values[DELAYS] == [35] * 20
