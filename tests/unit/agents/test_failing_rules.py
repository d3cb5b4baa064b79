"""Rules that fail on a row, or do not come back: what else was in the batch does not suffer."""

import numpy as np
import pytest

from agents.local_learner import LocalProcessor, spec
from agents.rule_watchdog import RuleWatchdog
from agents.state_encoding import pack_state, unpack_state
from agents.testing import Sent
from schemas.records import Feedback, Instance
from schemas.writing import encode
from streams.engine.api import TaskContext
from streams.engine.errors import FinalError
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics, local
from tests.inline_pipeline import configured

BAD = 0.5
"""What the rules of these tests fail on."""


class Site:
    """A learner's agent, and what it sends."""

    def __init__(self, folder, name="b", *overrides):
        self.settings = configured(folder, *overrides)
        self.name, self.topics = name, Topics.of(self.settings)
        agent_spec = spec(self.settings, name)
        self.tables = {table.name: table for table in agent_spec.tables()}
        self.agent = LocalProcessor(
            self.settings, name, TaskContext(agent_spec.name, 0, self.tables)
        )

    def restarted(self):
        name = local(self.name)
        return LocalProcessor(self.settings, self.name, TaskContext(name, 0, self.tables))

    def process(self, topic, values):
        n = len(values)
        dead_letters = self.topics.deadletter_of(self.name)
        sent, keys = Sent(dead_letters), [b"k"] * n
        self.agent.process(
            Batch(topic, 0, 0, n, n, list(range(n)), [1_000] * n, keys, values), sent
        )
        dead = [dict(message[-1]) for message in sent.messages if message[0] == dead_letters]
        predictions = [
            message[3] for message in sent.messages if message[0] == self.topics.predictions
        ]
        return predictions, dead

    def arrive(self, rows):
        topic = self.topics.instances(self.name)
        return self.process(topic, [encode(Instance(f"p{z}", (z,), 5)) for z in rows])

    def hear(self, rows):
        lessons = [
            Feedback(f"p{z}", "ill" if z > 0.4 else "well", "well", 1, "0", "well", 5) for z in rows
        ]
        return self.process(self.topics.feedback(self.name), list(map(encode, lessons)))


def failing(step):
    def checked(rows, *arguments):
        if (rows == BAD).any():
            raise ValueError("a value that must not be told: 0.5")
        return step(rows, *arguments)

    return checked


def test_a_stored_model_that_was_tampered_with_stops_the_task(tmp_path):
    model = '{kind="river", model="river.tree:HoeffdingTreeClassifier"}'
    site = Site(tmp_path, "b", f"learners.b.rules={{well={model}}}")
    site.arrive([0.1, 0.9])
    site.hear([0.1, 0.9])
    stored = site.tables["learned"].get(b"well")
    assert stored is not None
    site.restarted()
    state = unpack_state(stored)
    state["objects"] = np.frombuffer(b"cos\nsystem\n(S'true'\ntR.", np.uint8)
    site.tables["learned"].put(b"well", pack_state(state))
    with pytest.raises(FinalError, match="learner b: the stored model of rule well is refused"):
        site.restarted()


ROWS = [round(k / 100, 2) for k in range(1, 98)]


def test_only_the_row_that_a_rule_fails_on_is_refused(tmp_path):
    site, sound = Site(tmp_path), Site(tmp_path)
    rule = site.agent.learner.rules[0]
    rule._log_odds = failing(rule._log_odds)
    predictions, dead = site.arrive(ROWS)
    assert [letter["hb-reason"] for letter in dead] == [b"rule_failed"]
    assert dead[0]["hb-offset"] == b"%d" % ROWS.index(BAD)
    assert b"0.5" not in dead[0]["hb-detail"]
    assert predictions == sound.arrive([z for z in ROWS if z != BAD])[0]


def test_only_the_row_that_cannot_be_learned_teaches_nobody(tmp_path):
    site, sound = Site(tmp_path), Site(tmp_path)
    rule = site.agent.learner.rules[0]
    rule._learn = failing(rule._learn)
    site.arrive(ROWS)
    sound.arrive([z for z in ROWS if z != BAD])
    _, dead = site.hear(ROWS)
    sound.hear([z for z in ROWS if z != BAD])
    assert [letter["hb-offset"] for letter in dead] == [b"%d" % ROWS.index(BAD)]
    ours, theirs = (place.tables["learned"].get(b"lr") for place in (site, sound))
    assert ours == theirs
    assert site.agent.learner.iup.labelled == len(ROWS)  # counted all the same


def test_a_rule_that_does_not_return_is_named_and_the_next_one_runs(tmp_path, caplog):
    site = Site(tmp_path)
    rule = site.agent.learner.rules[0]
    sound = rule._log_odds

    def endless(rows):
        while True:
            try:
                rows.sum()
            except Exception:  # noqa: BLE001 - as careless rules do
                continue

    rule._log_odds = endless
    with RuleWatchdog(0.3):
        with pytest.raises(FinalError, match="rule lr of learner b does not return"):
            site.arrive(ROWS)
        rule._log_odds = sound
        predictions, dead = site.arrive(ROWS)
    assert (len(predictions), dead) == (len(ROWS), [])
    assert "rule lr did not return within 0.3 s" in caplog.text
