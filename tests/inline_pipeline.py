"""All agents of one partition in this process, without a broker: each record is awaited.

What is published and what comes of it is kept, so that it can be read back as it is, or with a
record missing or twice.
"""

from dataclasses import replace

import numpy as np

from agents import ensemble_learner, local_learner
from audit.live_state import LiveState
from audit.observed import Observed
from audit.recording.partition_logs import empty_logs
from audit.recording.reader import Span
from schemas.records import Context, Instance, Label
from schemas.writing import encode
from settings.loading import load_settings
from streams.engine.api import TaskContext
from streams.engine.outbox import Outbox
from streams.engine.state import CountsTable
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics

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


JOINT = (
    'learners.a.rules={sgd={kind="logistic", joint=true}}',
    'learners.b.rules={lr={kind="bayes", joint=true}}',
)
"""Overrides that make all learners fit one model together."""


def configured(folder, *overrides):
    file = folder / "ensemble.toml"
    file.write_text(TOML)
    return load_settings(file, overrides)


class Shelf(Outbox):
    """Keeps what an agent sends, in place of a transaction."""

    def __init__(self, deadletters):
        super().__init__(lambda: None, 0, deadletters)
        self.sent = []

    def _append(self, topic, records, extra):
        self.sent += [(topic, *record, tuple(extra)) for record in records]


class Inline:
    """The agents, their tables, and all that was published, topic by topic."""

    def __init__(self, settings):
        self.settings, self.topics = settings, Topics.of(settings)
        self.published = {topic: [] for topic in empty_logs(settings, 0).by_topic()}
        self.tables, self.inputs, self.specs = {}, {}, []
        specs = [local_learner.spec(settings, name) for name in settings.learners]
        for spec in (*specs, ensemble_learner.spec(settings)):
            self.specs.append(spec)
            self.tables[spec.name] = {table.name: table for table in spec.tables()}
            agent = spec.processor(TaskContext(spec.name, 0, self.tables[spec.name]))
            self.inputs.update(dict.fromkeys(spec.inputs, agent))

    def publish(self, topic, time, key, value, headers=()):
        """Publish a record, and all that comes of it."""
        offset = len(self.published[topic])
        where = topic, 0, offset, offset + 1, offset + 1
        marks = {0: headers} if headers else {}
        batch = Batch(*where, [offset], [time], [key], [value], marks)
        self.published[topic].append(batch)
        if topic in self.inputs:
            shelf = Shelf(self.topics.deadletter)
            self.inputs[topic].process(batch, shelf)
            for sent in shelf.sent:
                self.publish(*sent)

    def logs(self, *, without=None, twice=None):
        """Read everything back; `without` and `twice` name a topic and a record of it."""
        logs = empty_logs(self.settings, 0)
        for topic, log in logs.by_topic().items():
            batches = list(self.published[topic])
            logs.spans[topic] = Span(topic, 0, 0, len(batches) + 1)
            if without is not None and without[0] == topic:
                del batches[without[1]]
            if twice is not None and twice[0] == topic:
                end = len(batches)
                batches.append(replace(batches[twice[1]], base=end, next=end + 1, offsets=[end]))
            log.refused = logs.dead.reasons.get(topic, {})
            for batch in batches:
                log.take(batch)
        return logs

    def states(self):
        """Return the live state, as the changelogs would give it."""
        for agent in self.inputs.values():
            agent.save()
        states = {}
        for spec in self.specs:
            state = LiveState(
                spec.name, {topic: len(self.published[topic]) for topic in spec.inputs}
            )
            for name, table in self.tables[spec.name].items():
                if isinstance(table, CountsTable):
                    state.counts[name] = table.empty()
                    state.counts[name].put(*table.items())
                else:
                    state.entries[name] = dict(table.items())
            states[spec.name] = state
        return states

    def observed(self, **changes):
        return Observed(self.logs(**changes), self.states())


def lived(settings, n=150, lag=0, labelled=None):
    """Let patients come and be labelled, `lag` patients later; only the first `labelled`.

    The first patients of a long stream are those of a short one.
    """
    live = Inline(settings)
    rng = np.random.default_rng(5)
    rows = dict(zip("xyz", rng.random((1000, 3)).T, strict=True))
    truth = np.where(rows["x"] + rows["z"] > 1.1, "ill", "well")
    for k in range(n + lag):
        time = 1_000_000 + 10 * k
        if k < n:
            _arrive(live, f"p{k}", {name: float(rows[name][k]) for name in rows}, time)
        if k >= lag and (labelled is None or k - lag < labelled):
            value = encode(Label(f"p{k - lag}", str(truth[k - lag]), time))
            live.publish(live.topics.labels, time + 5, b"", value)
    return live


def _arrive(live, name, row, time):
    context = live.settings.ensemble.context
    if context is not None:
        value = encode(Context(name, {f.name: row[f.name] for f in context.features}, time))
        live.publish(live.topics.contexts, time, b"", value)
    for learner, each in live.settings.learners.items():
        value = encode(Instance(name, {f.name: row[f.name] for f in each.features}, time))
        live.publish(live.topics.instances(learner), time, b"", value)
