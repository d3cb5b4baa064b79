"""Streams of patients through all agents without a broker, for tests of audit and replay.

What is published and what comes of it can be read back as it is, or with a record missing or twice.
"""

from dataclasses import replace

import numpy as np

from agents.testing import Pipeline
from audit.live_state import LiveState
from audit.observed import Observed
from audit.recording.partition_logs import empty_logs
from audit.recording.reader import Span
from schemas.records import Context, Instance, Label
from schemas.writing import encode
from settings.loading import load_settings
from streams.engine.state import CountsTable

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


class Inline(Pipeline):
    """The pipeline of `agents.testing`, with everything that an audit reads."""

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
            log.refused = logs.reasons.get(topic, {})
            for batch in batches:
                log.take(batch)
        return logs

    def states(self):
        """Return the live state, as the changelogs would give it."""
        states = {}
        for name, agent in self.agents.items():
            agent.processor.save()
            positions = {topic: len(self.published[topic]) for topic in agent.spec.inputs}
            state = states[name] = LiveState(name, positions)
            for table in agent.tables.values():
                if isinstance(table, CountsTable):
                    state.counts[table.name] = table.empty()
                    state.counts[table.name].put(*table.items())
                else:
                    state.entries[table.name] = dict(table.items())
        return states

    def observed(self, **changes):
        return Observed(self.logs(**changes), self.states())


def lived(settings, n=150, lag=0, labelled=None, past=0):
    """Let patients come and be labelled, `lag` patients later; only the first `labelled`.

    The first `past` of them are marked as history. A long stream begins like a short one.
    """
    live = Inline(settings)
    rng = np.random.default_rng(5)
    rows = dict(zip("xyz", rng.random((1000, 3)).T, strict=True))
    truth = np.where(rows["x"] + rows["z"] > 1.1, "ill", "well")
    for k in range(n + lag):
        time = 1_000_000 + 10 * k
        if k < n:
            _arrive(live, f"p{k}", {name: float(rows[name][k]) for name in rows}, time, k < past)
        if k >= lag and (labelled is None or k - lag < labelled):
            value = encode(Label(f"p{k - lag}", str(truth[k - lag]), time))
            live.publish(live.topics.labels, b"", value, at=time + 5)
    return live


def _arrive(live, name, row, time, past=False):
    context = live.settings.ensemble.context
    if context is not None:
        value = encode(Context(name, {f.name: row[f.name] for f in context.features}, time))
        live.publish(live.topics.contexts, b"", value, at=time)
    for learner, section in live.settings.learners.items():
        value = encode(
            Instance(name, {f.name: row[f.name] for f in section.features}, time, history=past)
        )
        live.publish(live.topics.instances(learner), b"", value, at=time)


def with_gaps(settings, n=80, share=0.3, lag=2):
    """Let patients come some of whose values are missing, each in one of the ways to say so."""
    live = Inline(settings)
    rng = np.random.default_rng(11)
    rows = rng.random((n, 3))
    gone = rng.random((n, 3)) < share
    words = [None, "NA", "?", ""]
    for k in range(n + lag):
        live.now = 1_000_000 + 10 * k
        if k < n:
            row = rows[k].tolist()
            features = {
                name: (words[k % 4] if gone[k, j] else row[j]) for j, name in enumerate("xyz")
            }
            live.patient(f"p{k}", features)
        if k >= lag:
            x, _, z = rows[k - lag]
            live.label(f"p{k - lag}", "ill" if x + z > 1.1 else "well")
    return live
