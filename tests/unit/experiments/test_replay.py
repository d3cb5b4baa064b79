"""A replay without a broker: the agents themselves make the record, patient by patient."""

import numpy as np
import pytest

from agents import ensemble_learner, local_learner
from experiments.partition_logs import empty_logs
from experiments.recording import Span, upto
from experiments.replay import replayed
from experiments.tape import tape_of
from schemas.codec import encode
from schemas.records import Instance, Label
from streams.errors import InputError
from streams.settings import load_settings
from streams.tasks.batch import Batch
from streams.tasks.outbox import Outbox
from streams.tasks.processor import TaskContext
from streams.topics import Topics

N = 150


class Shelf(Outbox):
    """Keeps what an agent sends, in place of a transaction."""

    def __init__(self):
        super().__init__(lambda: None, 0, "dead")
        self.sent = []

    def emit_many(self, topic, keys, values, timestamps, *, partition=None):
        self.sent += zip([topic] * len(keys), keys, values, timestamps, strict=True)


class Live:
    """All agents of one partition, in this process, each record awaited."""

    def __init__(self, settings):
        self.topics = Topics.of(settings)
        self.logs = empty_logs(settings, 0)
        self.by_topic = self.logs.by_topic()
        self.ends = dict.fromkeys(self.by_topic, 0)
        specs = [local_learner.spec(settings, name) for name in settings.learners]
        self.inputs = {}
        for spec in (*specs, ensemble_learner.spec(settings)):
            tables = {table.name: table for table in spec.tables()}
            agent = spec.processor(TaskContext(spec.name, 0, tables))
            self.inputs.update(dict.fromkeys(spec.inputs, agent))

    def publish(self, topic, key, value, time):
        """Publish a record, and all that comes of it."""
        offset = self.ends[topic]
        self.ends[topic] += 1
        where = topic, 0, offset, offset + 1, offset + 1
        batch = Batch(*where, [offset], [time], [key], [value])
        self.by_topic[topic].take(batch)
        self.logs.spans[topic] = Span(topic, 0, 0, self.ends[topic])
        if topic in self.inputs:
            shelf = Shelf()
            self.inputs[topic].process(batch, shelf)
            for sent in shelf.sent:
                self.publish(*sent)


def lived(settings, n=N, lag=0):
    """Let patients come and be labelled, `lag` patients later."""
    live = Live(settings)
    rng = np.random.default_rng(5)
    rows = {"x": rng.random(n), "y": rng.random(n), "z": rng.random(n)}
    truth = np.where(rows["x"] + rows["z"] > 1.1, "ill", "well")
    for k in range(n + lag):
        time = 1_000_000 + 10 * k
        if k < n:
            for name, learner in settings.learners.items():
                x = {f.name: float(rows[f.name][k]) for f in learner.features}
                value = encode(Instance(f"p{k}", x, time))
                live.publish(live.topics.instances(name), b"", value, time)
        if k >= lag:
            value = encode(Label(f"p{k - lag}", str(truth[k - lag]), time))
            live.publish(live.topics.labels, b"", value, time + 5)
    for topic in live.by_topic:
        live.logs.spans.setdefault(topic, Span(topic, 0, 0, 0))
    return live.logs


TOML = """
version = 1
name = "t"
labels = ["well", "ill"]
positive = "ill"

[defaults]
horizon = 1000
cuts = 2
exploration = 0.01
rules.well = { kind = "constant", label = "well" }
rules.ill = { kind = "constant", label = "ill" }

[learners.a]
features = [{ name = "x", low = 0.0, high = 1.0 }, { name = "y", low = 0.0, high = 1.0 }]

[learners.b]
feedback = "full"
features = [{ name = "z", low = 0.0, high = 1.0 }]
rules.lr = { kind = "bayes" }
rules.well = { kind = "constant", label = "well" }

[ensemble]
label_ttl = "1h"
"""


@pytest.fixture
def configured(tmp_path):
    file = tmp_path / "ensemble.toml"
    file.write_text(TOML)
    return lambda *overrides: load_settings(file, overrides)


@pytest.mark.parametrize("mode", ["wm", "ah", "stack", "committee"])
@pytest.mark.parametrize("lag", [0, 7])
def test_the_same_settings_give_the_same_diagnoses(configured, mode, lag):
    settings = configured(f"ensemble.mode={mode}")
    found = replayed([lived(settings, lag=lag)], settings)
    assert found.agreement == 1.0
    assert found.compared == found.patients == N
    assert found.live.labelled == N
    live, again = found.live.report(1), found.replayed.report(1)
    assert live == again
    assert live["rates"]["ensemble"]["per"] < 0.4


def test_other_settings_give_what_they_would_have_given(configured):
    recorded = lived(configured())
    changed = configured("ensemble.mode=ah", "defaults.exploration=0.5")
    found = replayed([recorded], changed)
    direct = replayed([lived(changed)], changed)
    assert found.replayed.report(1) == direct.live.report(1)
    assert found.live.report(1) == replayed([recorded], configured()).live.report(1)


def test_features_can_be_taken_from_other_learners(configured):
    recorded = lived(configured())
    wider = 'learners.b.features=[{name="y", low=0.0, high=1.0}, {name="z", low=0.0, high=1.0}]'
    settings = configured(wider)
    tape = tape_of([recorded], settings)
    rows = tape.arrivals["b"].rows
    first = recorded.instances["a"].columns["row"]
    assert rows[:, 0].tolist() == first[:, 1].tolist()
    assert replayed([recorded], settings).patients == N


def test_what_was_not_recorded_cannot_be_replayed(configured):
    recorded = lived(configured(), n=3)
    other = 'learners.b.features=[{name="weight", low=0.0, high=1.0}]'
    with pytest.raises(InputError, match="not recorded"):
        replayed([recorded], configured(other))


def test_a_shorter_time_to_live_loses_labels(configured):
    recorded = lived(configured(), lag=20)
    found = replayed(
        [recorded], configured("ensemble.label_ttl=100ms", "ensemble.fusion_timeout=50ms")
    )
    assert found.live.labelled == N
    assert found.replayed.labelled == 0


def test_an_empty_record(configured):
    found = replayed([lived(configured(), n=0)], configured()).report()
    assert found["figures"]["agreement"] is None
    assert found["figures"]["live"]["rates"]["ensemble"]["per"] is None


def test_a_batch_is_cut_at_an_offset():
    batch = Batch("t", 0, 0, 9, 9, [1, 4, 8], [0, 0, 0], [None] * 3, [b"a", b"b", b"c"], {2: ()})
    assert upto(batch, 8).values == [b"a", b"b"]
    assert upto(batch, 8).next == 8
    assert upto(batch, 9) is batch
