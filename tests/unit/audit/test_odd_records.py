"""An audit never fails on what it finds: whatever anybody has written, it reports."""

import os
import random
from dataclasses import replace

import orjson
import pytest

from audit.end_to_end import _live, recompute
from audit.findings import Findings
from audit.live_state import StateGatherer
from audit.metric_values import audit_metrics
from audit.observed import Observed
from streams.engine.changelogs.changelog import META_KEY, VERSION
from streams.engine.state.counts import CountsTable
from streams.kafka.batch import Batch
from tests.inline_pipeline import configured, lived

SEED = int(os.environ.get("HB_AUDIT_SEED", "7"))
ROUNDS = int(os.environ.get("HB_AUDIT_ROUNDS", "80"))
ODD = (
    None, True, -1, 0, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30), 0.5, 1e308, "", "x", "p3", "ill",
    "9" * 40, "\x00", "é" * 300, [], [1, None], {}, {"x": 1},
)  # fmt: skip


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    return lived(configured(tmp_path_factory.mktemp("odd")), 30, lag=3, labelled=20)


def changelog(live, spec):
    """Return the state of an agent as the records of its changelogs."""
    records = []
    tables = live.agents[spec.name].tables
    for table in tables.values():
        if isinstance(table, CountsTable):
            table.claim(table.items()[0])
            pairs = table.drain()
        else:
            pairs = table.items()
        records += [(table.prefix + key, value) for key, value in pairs]
    meta = {
        "version": VERSION,
        "layout": {name: table.layout for name, table in tables.items()},
        "positions": {topic: len(live.published[topic]) for topic in spec.inputs},
    }
    return [*records, (META_KEY, orjson.dumps(meta))]


def batch_of(records):
    keys, values = zip(*records, strict=True)
    n = len(records)
    return Batch("c", 0, 0, n, n, list(range(n)), [0] * n, list(keys), list(values))


def states(live, changed=lambda _agent, records: records):
    gathered = {}
    for agent in live.agents.values():
        agent.processor.save()
        spec = agent.spec
        gatherer = StateGatherer(spec)
        gatherer.take(batch_of(changed(spec.name, changelog(live, spec))))
        gathered[spec.name] = gatherer.state()
    return gathered


def report(live, observed):
    """Audit as the command does, from the observed on."""
    findings, again = recompute(observed)
    tables = _live(observed, findings)
    if again is not None and tables is not None:
        with findings.reporting("metrics of the state", "all partitions"):
            audit_metrics(live.settings, [again], [tables], findings)
    assert all(finding.times > 0 for finding in findings.list())
    return findings


def odd_bytes(rng, value):
    """Return something else in place of a value that was stored or sent."""
    ways = [
        lambda: b"",
        lambda: value[: rng.randrange(len(value))] if value else b"{",
        lambda: value + b"\xff",
        lambda: rng.randbytes(rng.randrange(1, 60)),
        lambda: value * 3,
        lambda: rng.randbytes(len(value)),
        lambda: bytes(byte ^ (rng.random() < 0.1) << rng.randrange(8) for byte in value),
        lambda: orjson.dumps(rng.choice([1, "x", [], {}, None])),
    ]
    return rng.choice(ways)()


def odd_record(rng, value):
    """Return a record with one field that is something else, or bytes that are not a record."""
    try:
        record = orjson.loads(value)
    except orjson.JSONDecodeError:
        return odd_bytes(rng, value)
    if not isinstance(record, dict) or not record or rng.random() < 0.2:
        return odd_bytes(rng, value)
    record[rng.choice(list(record))] = rng.choice(ODD)
    try:
        return orjson.dumps(record)
    except TypeError:  # a number beyond 64 bits
        return b'{"v":1,"id":"p3","cube":"%s"}' % (b"9" * 40)


def test_records_that_are_odd_in_any_field_are_reported(stream):
    rng = random.Random(SEED)
    topics = [topic for topic, batches in stream.published.items() if batches]
    clean = 0
    for _ in range(ROUNDS):
        topic = rng.choice(topics)
        number = rng.randrange(len(stream.published[topic]))
        before = stream.published[topic][number]
        odd = odd_record(rng, before.values[0] or b"")
        stream.published[topic][number] = replace(before, values=[odd])
        try:
            clean += report(stream, Observed(stream.logs(), states(stream))).clean
        finally:
            stream.published[topic][number] = before
    assert clean < ROUNDS / 2, f"seed {SEED}: a change of a record shows"
    assert report(stream, Observed(stream.logs(), states(stream))).clean


def test_state_that_is_odd_in_any_row_is_reported(stream):
    rng = random.Random(SEED)
    agents = list(stream.agents)

    def change(chosen):
        def changed(agent, records):
            if agent != chosen:
                return records
            at = rng.randrange(len(records))
            key, value = records[at]
            odd = rng.choice(
                [
                    (key, odd_bytes(rng, value)),
                    (odd_bytes(rng, key), value),
                    (key + rng.randbytes(3), value),
                    (b"nowhere/" + key, value),
                    (None, value),
                    (key, None),
                    (META_KEY, odd_bytes(rng, records[-1][1])),
                ]
            )
            return [*records[:at], odd, *records[at + 1 :]]

        return changed

    for _ in range(ROUNDS):
        observed = Observed(stream.logs(), states(stream, change(rng.choice(agents))))
        report(stream, observed)


def meta(**changes):
    def changed(_agent, records):
        held = {**orjson.loads(records[-1][1]), **changes}
        return [*records[:-1], (META_KEY, orjson.dumps(held))]

    return changed


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"layout": {"counts": "counts:99:<i8"}}, "table counts in another layout"),
        ({"layout": {"strange": "entries:1"}}, "tables that these settings do not lead to"),
        ({"positions": [1, 2]}, "records of positions that cannot be read"),
    ],
)
def test_what_the_state_says_of_itself_is_held_against_the_settings(stream, changes, sentence):
    findings = report(stream, Observed(stream.logs(), states(stream, meta(**changes))))
    assert any(sentence in finding.what for finding in findings.list())


def test_a_topic_of_nothing_but_odd_records_leaves_the_others_audited(stream):
    published = dict(stream.published)
    try:
        for topic in (stream.topics.predictions, stream.topics.feedback("a")):
            odd = [replace(batch, values=[b"\xff\x00"]) for batch in published[topic]]
            stream.published[topic] = odd
        findings = report(stream, Observed(stream.logs(), states(stream)))
        assert findings.tables["local.b counts"].values
        assert (
            report(stream, Observed(stream.logs(), states(stream))).differences
            == findings.differences
        )
    finally:
        stream.published.update(published)


def test_findings_hold_no_value(stream):
    findings = Findings()
    with findings.reporting("a part", "here"):
        raise ValueError("patient p17 is ill")
    (finding,) = findings.list()
    assert "p17" not in finding.what
    assert "ValueError at " in finding.what
