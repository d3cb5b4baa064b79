"""The ensemble learner's agent: what it does with records that its ledger has no room for."""

import hashlib
from dataclasses import replace

from agents import ensemble_learner
from agents.agent_metrics import SHRUNK
from agents.testing import Sent
from schemas.deadletters import from_message
from schemas.records import Prediction
from schemas.writing import encode
from streams.clock import wall
from streams.engine.api import TaskContext
from streams.kafka.batch import Batch
from streams.kafka.topics import Topics
from tests.inline_pipeline import configured


class CountingReader:
    """A reader that counts the values it is asked to decode."""

    def __init__(self, reader):
        self._reader, self.decoded = reader, 0

    def read(self, values):
        self.decoded += len(values)
        return self._reader.read(values)


def predicted(instance, learner, label="ill", rule="ill"):
    return encode(
        Prediction(
            id=instance, learner=learner, label=label, phase=1, cube="0", rule=rule,
            exploring=False, trials=3, at=1_000,
        )
    )  # fmt: skip


def test_a_full_ledger_decodes_each_prediction_once_and_returns_each_as_it_came(tmp_path):
    settings = configured(tmp_path, "ensemble.max_pending=1")
    spec = ensemble_learner.spec(settings)
    tables = {table.name: table for table in spec.tables()}
    agent = ensemble_learner.EnsembleProcessor(settings, TaskContext(spec.name, 0, tables))
    reader = agent._read_predictions = CountingReader(agent._read_predictions)
    topics = Topics.of(settings)
    values = [predicted("kept", "a")]
    # The same instance and learner twice, with different labels: both are refused, each as it came.
    values += [predicted("other", "a"), predicted("other", "a", "well")]
    values += [predicted(f"p{k}", "b", rule="well") for k in range(200)]
    n = len(values)
    batch = Batch(
        topics.predictions, 0, 0, n, n,
        list(range(n)), [1_000] * n, [b"key"] * n, values, {},
    )  # fmt: skip
    sent = Sent(topics.deadletter)
    agent.process(batch, sent)
    dead = [value for topic, _, _, value, _ in sent.messages if topic == topics.deadletter]
    assert dead == values[1:]
    assert reader.decoded == n


def test_of_a_large_early_label_only_its_digest_waits(tmp_path):
    settings = configured(tmp_path)
    spec = ensemble_learner.spec(settings)
    tables = {table.name: table for table in spec.tables()}
    agent = ensemble_learner.EnsembleProcessor(settings, TaskContext(spec.name, 0, tables))
    topics, now = Topics.of(settings), wall()
    small = b'{"v":1,"id":"s","label":"ill","at":5}'
    large = b'{"v":1,"id":"l","label":"ill","at":5,"note":"%s"}' % bytes(200_000).replace(
        b"\0", b"a"
    )
    sent = Sent(topics.deadletter)
    batch = Batch(
        topics.labels, 0, 0, 2, 2, [0, 1], [now - 7_200_000] * 2, [b"s", b"l"], [small, large], {}
    )
    agent.process(batch, sent)
    agent.save()
    waiting = sum(len(value) for _, value in tables["pending"].items())
    assert waiting < 1_000
    agent = ensemble_learner.EnsembleProcessor(settings, TaskContext(spec.name, 0, tables))
    agent.tick(now, sent)  # nobody predicted them within label_ttl
    letters = [from_message(message[-1], message[2], message[3]) for message in sent.messages]
    assert [letter.reason for letter in letters] == ["unknown", "unknown"]
    assert letters[0].value == small
    assert (letters[1].value, letters[1].size) == (None, len(large))
    assert letters[1].sha256 == hashlib.sha256(large).hexdigest()


def test_early_labels_beyond_the_room_for_them_leave_a_digest_and_are_counted(tmp_path):
    settings = configured(tmp_path)
    spec = ensemble_learner.spec(settings)
    tables = {table.name: table for table in spec.tables()}
    agent = ensemble_learner.EnsembleProcessor(settings, TaskContext(spec.name, 0, tables))
    ledger, topics, now = agent.learner.ledger, Topics.of(settings), wall()
    values = [b'{"v":1,"id":"p%d","label":"ill","at":5}' % k for k in range(5)]
    ledger.rules = replace(ledger.rules, max_early=2 * len(values[0]))
    sent = Sent(topics.deadletter)
    batch = Batch(
        topics.labels, 0, 0, 5, 5, list(range(5)), [now - 7_200_000] * 5, [b"k"] * 5, values, {}
    )
    agent.process(batch, sent)
    assert ledger.early_bytes == 2 * len(values[0])
    assert sent.notes.counts[SHRUNK] == 3
    agent.tick(now, sent)
    assert ledger.early_bytes == 0
    letters = [from_message(message[-1], message[2], message[3]) for message in sent.messages]
    assert [letter.value for letter in letters] == [*values[:2], None, None, None]
    digests = [letter.sha256 for letter in letters[2:]]
    assert digests == [hashlib.sha256(value).hexdigest() for value in values[2:]]


CONTEXT = 'ensemble.context={features=[{name="age", low=0.0, high=100.0}], cuts=2}'


def test_a_repeated_context_is_a_duplicate_also_after_a_restart(tmp_path):
    settings = configured(tmp_path, CONTEXT, "ensemble.mode=ch-vote")
    spec = ensemble_learner.spec(settings)
    tables = {table.name: table for table in spec.tables()}
    topics, sent = Topics.of(settings), Sent(Topics.of(settings).deadletter)
    for offset, age in enumerate([10, 10, 90]):
        agent = ensemble_learner.EnsembleProcessor(settings, TaskContext(spec.name, 0, tables))
        value = b'{"v":1,"id":"p","x":[%d],"at":5}' % age
        batch = Batch(topics.contexts, 0, offset, 1, 1, [offset], [wall()], [b"p"], [value], {})
        agent.process(batch, sent)
        agent.save()
    counts = agent.learner.ledger.counts
    assert (counts["context_duplicate"], counts["context_conflict"]) == (1, 1)
