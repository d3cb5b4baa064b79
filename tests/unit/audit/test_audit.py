"""The audit without a broker: every check finds what it is there for."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.totals import FORGOTTEN
from audit.end_to_end import recompute
from audit.findings import Kind
from audit.observed import Observed
from audit.recording.reader import Span
from audit.settling_order import merged_order
from learners.join import AMENDMENTS, COUNTERS
from schemas.records import Instance, Label
from schemas.writing import encode
from tests.inline_pipeline import JOINT, Inline, configured, lived, with_gaps

N, LABELLED = 40, 30


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream with a bad record, a repeated label and a conflicting one, and labels to come."""
    live = lived(configured(tmp_path_factory.mktemp("audit")), N, lag=3, labelled=LABELLED)
    live.publish(live.topics.instances("a"), b"", b"{", at=2_000_000)
    for name in ("well", "ill"):
        live.publish(live.topics.labels, b"", encode(Label("p3", name, 5)), at=2_000_000)
    live.publish(live.topics.labels, b"", encode(Label("nobody", "ill", 5)), at=2_000_000)
    return live


def examine(observed):
    return recompute(observed)[0]


def kinds(findings):
    return {str(kind): findings.total(kind) for kind in Kind}


def test_nothing_is_found_where_nothing_is_wrong(stream):
    findings = examine(stream.observed())
    assert findings.clean, findings.list()
    assert all(check.values or name.endswith("features") for name, check in findings.tables.items())
    counts = findings.counts
    assert counts["patients"] == counts["diagnoses"] == N
    assert counts["labels_settled"] == LABELLED
    outcomes = ("settled", "repeated", "conflict", "waiting")
    assert [counts[f"labels_{name}"] for name in outcomes] == [LABELLED, 1, 1, 1]
    assert counts["labels"] == LABELLED + 3


@pytest.mark.parametrize("mode", ["ah", "stack", "committee", "adaboost", "trackexp", "pwm"])
def test_every_mode_is_recomputed(tmp_path, mode):
    live = lived(configured(tmp_path, f"ensemble.mode={mode}"), N)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    assert not any(check.note for check in findings.tables.values())


@pytest.mark.parametrize(
    "changes", [(), JOINT, ("defaults.backoff=5",)], ids=["", "joint", "backoff"]
)
def test_missing_values_are_never_dead_letters_and_recomputed_exactly(tmp_path, changes):
    live = with_gaps(configured(tmp_path, "ensemble.mode=stack", *changes))
    assert live.dead_letters == []
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    assert findings.tables["local.b filling"].values > 0
    assert not any(check.note for check in findings.tables.values())


def test_what_joint_learners_are_told_is_recomputed(tmp_path):
    live = lived(configured(tmp_path, "ensemble.mode=stack", *JOINT), N)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    assert findings.tables["local.a model sgd"].values > 0
    log_odds = live.observed().logs.feedback["a"].columns["others"]
    assert np.isfinite(log_odds).all()
    assert (log_odds[5:] != 0).any()
    altered = live.observed()
    altered.logs.feedback["a"].columns["others"][7] += 0.25
    texts = {finding.what for finding in examine(altered).list()}
    assert texts == {"what feedback says of the others", "values of table local.a model sgd"}


def test_late_opinions_are_corrected_alike_live_and_in_the_audit(tmp_path):
    settings = configured(tmp_path, "ensemble.mode=stack", *JOINT)
    live = lived(settings, N, lag=8)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    log_odds = live.observed().logs.feedback["a"].columns["odds"]
    assert np.isfinite(log_odds[20:]).all()
    altered = live.observed()
    altered.logs.feedback["a"].columns["odds"][30] += 0.25
    texts = {finding.what for finding in examine(altered).list()}
    assert texts == {"contents of feedback", "values of table local.a model sgd"}


EXPLAINED = ("learners.b.reasons=true",)


def test_reasons_are_there_once_and_sum_to_the_log_odds_that_were_sent(tmp_path):
    live = lived(configured(tmp_path, *EXPLAINED), N)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    by_bayes = [p for p in live.predictions("b") if p.rule == "lr" and p.label is not None]
    assert [why.id for why in live.reasons("b")] == [p.id for p in by_bayes]
    assert findings.counts["reasons"] == len(by_bayes) > N // 2
    topic = live.topics.reasons("b")
    assert kinds(examine(live.observed(without=(topic, 7)))) == {
        "lost": 1, "double": 0, "differing": 0
    }  # fmt: skip
    assert kinds(examine(live.observed(twice=(topic, 7)))) == {
        "lost": 0, "double": 1, "differing": 0
    }  # fmt: skip


def test_reasons_are_expected_from_the_first_of_them_on(tmp_path):
    live = lived(configured(tmp_path, *EXPLAINED), N)
    del live.published[live.topics.reasons("b")][:5]
    assert examine(live.observed()).clean, "they may have been switched on, or be gone by now"


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        (lambda why: {"log_odds": (why.log_odds[0] + 1e-9,)}, {"reasons of other log-odds"}),
        (lambda why: {"rest": (why.rest[0] + 1e-12,)}, set()),
        (lambda why: {"parts": {}}, set()),
    ],
)
def test_altered_reasons_are_found(tmp_path, change, extra):
    live = lived(configured(tmp_path, *EXPLAINED), N)
    batch = live.published[live.topics.reasons("b")][9]
    why = live.reasons("b")[9]
    batch.values[0] = encode(msgspec.structs.replace(why, **change(why)))
    findings = examine(live.observed())
    assert {finding.what for finding in findings.list()} == {"sums of reasons", *extra}


def test_contexts_are_recomputed(tmp_path):
    context = 'ensemble.context={cuts=2, features=[{name="y", low=0.0, high=1.0}]}'
    live = lived(configured(tmp_path, "ensemble.mode=ch", context), N)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    assert findings.tables["ensemble regret"].values > 4


OUTPUTS = ["predictions", "diagnoses", "feedback.a", "feedback.b"]


@pytest.mark.parametrize("topic", OUTPUTS)
def test_what_is_missing_is_lost(stream, topic):
    findings = examine(stream.observed(without=(f"t.{topic}", 11)))
    assert kinds(findings)["lost"] == 1


@pytest.mark.parametrize("topic", OUTPUTS)
def test_what_is_there_twice_is_double(stream, topic):
    findings = examine(stream.observed(twice=(f"t.{topic}", 11)))
    assert kinds(findings) == {"lost": 0, "double": 1, "differing": 0}


@pytest.mark.parametrize(
    ("topic", "record"),
    [("instances.a", 1), ("instances.b", 1), ("labels", 1), ("deadletter", 0), ("deadletter.a", 0)],
)
def test_a_missing_input_is_noticed(stream, topic, record):
    assert not examine(stream.observed(without=(f"t.{topic}", record))).clean


def told(agent, table, width):
    """Return the columns of a table that the topics determine: of a window, those in use."""
    if table == "window":
        return range(0, LABELLED * 5, 7)
    untold = {FORGOTTEN} if (table, agent) in {("totals", "local.a"), ("totals", "local.b")} else {}
    if table == "amendments":
        untold = {AMENDMENTS.index("amend_given_up")}
    return [column for column in range(width) if column not in untold]


@pytest.mark.parametrize("agent", ["local.a", "local.b", "ensemble"])
def test_every_altered_count_is_found(stream, agent):
    logs, tried = stream.logs(), 0
    for name, table in stream.states()[agent].counts.items():
        for cell in table.items()[0].tolist():
            for column in told(agent, name, table.width):
                observed = Observed(logs, stream.states())
                changed = observed.states[agent].counts[name]
                changed.bump(changed.claim(np.array([cell])), column, 1)
                counts = kinds(examine(observed))
                # A counter of the join may be part of several sums.
                counts["differing"] = min(counts["differing"], 1)
                assert counts == {"lost": 0, "double": 0, "differing": 1}, (name, column)
                tried += 1
    assert tried > 5


def altered(stream, agent, table, change):
    """Return the findings after one entry of a table was changed."""
    observed = stream.observed()
    entries = observed.states[agent].entries[table]
    key = next(key for key in entries if change(entries[key]) is not None)
    entries[key] = change(entries[key])
    return examine(observed)


def test_an_altered_model_is_found(stream):
    findings = altered(stream, "local.b", "learned", lambda data: data[:-3] + b"\x01\x02\x03")
    assert findings.total(Kind.DIFFERING) == 1


def test_altered_features_are_found(stream):
    findings = altered(stream, "local.b", "features", lambda data: data[:-1] + b"\x7f")
    assert findings.total(Kind.DIFFERING) == 1


@pytest.mark.parametrize("place", [1, 2])
def test_an_altered_decision_that_waits_is_found(stream, place):
    def change(data):
        entry = msgspec.msgpack.decode(data)
        if entry[0] != "diagnosed":
            return None
        decision = entry[7]
        decision[place] = 1 - decision[1] if place == 1 else decision[2][::-1]
        return msgspec.msgpack.encode(entry)

    assert not altered(stream, "ensemble", "pending", change).clean


def test_a_settlement_that_the_state_forgot_is_found(stream):
    observed = stream.observed()
    entries = observed.states["ensemble"].entries["pending"]
    del entries[b"p5"]
    assert not examine(observed).clean


def test_an_altered_counter_is_found(stream):
    observed = stream.observed()
    row = observed.totals.row
    for name in ("label_conflict", "settled"):
        row[COUNTERS.index(name)] += 1
    findings = examine(observed)
    assert findings.tables["ensemble counters"].differing == 4


def test_what_is_in_flight_does_not_count_as_a_difference(stream):
    early, late = (lived(stream.settings, n, lag=3) for n in (20, N))
    for topic, batches in early.published.items():
        assert late.published[topic][: len(batches)] == batches
    findings = examine(replace(late.observed(), states=early.states()))
    assert findings.clean, findings.list()
    assert findings.counts["labels_settled"] == 20
    assert findings.counts["labels_under_way"] == N - 20
    assert findings.counts["feedback_under_way"] == 2 * (N - 20)


def test_where_retention_cut_the_start_it_vouches_for_the_rest(stream):
    observed = stream.observed()
    for topic in ("t.instances.a", "t.instances.b", "t.predictions", "t.diagnoses"):
        log = observed.logs.by_topic()[topic]
        observed.logs.spans[topic] = Span(topic, 0, 10, 99)
        log.first_time = 1_000_000 + 10 * 10
    findings = examine(observed)
    assert observed.logs.vouched_from == 1_000_100
    assert findings.clean, findings.list()
    assert findings.tables["local.b model lr"].note


orders = st.permutations(range(12))


@given(orders, st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=3))
def test_the_order_of_settlements_is_found_again(order, parts):
    sequences = [list(order), *([n for n in order if n in part] for part in parts)]
    assert merged_order(sequences, times=[5] * 12) == (list(order), True)


def hard(settings, n=120, seed=0):
    """Let records come in any order: late, twice, never; patients unseen by some learners."""
    rng = np.random.default_rng(seed)
    live = Inline(settings)
    events = []
    for k in range(n):
        came = 1_000_000 + 20 * k
        for name in ("a", "b"):
            for _ in range(int(rng.choice([0, 1, 1, 1, 1, 2]))):
                x = [0.1, 0.9] if name == "a" else [float(k % 7) / 7]
                wait = int(rng.choice([0, 0, 0, 30, 90]))
                value = encode(Instance(f"p{k}", tuple(x), came))
                events.append((came + wait, live.topics.instances(name), value))
        for _ in range(int(rng.choice([0, 1, 1, 1, 2]))):
            label = "ill" if (k + rng.integers(8) // 7) % 3 else "well"
            wait = int(rng.choice([-30, 5, 40, 200, 900]))
            events.append((came + wait, live.topics.labels, encode(Label(f"p{k}", label, came))))
        if k % 10 == 0:
            events.append((came, live.topics.labels, b'{"v":1}'))
            events.append((came, live.topics.predictions, b"[]"))
    for time, topic, value in sorted(events, key=lambda event: event[0]):
        live.publish(topic, b"", value, at=time)
    return live


HARD = ("ensemble.fusion_timeout=50ms", "ensemble.label_ttl=600ms")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "change",
    [(), ("ensemble.max_pending=8",), ("ensemble.max_remembered=60",), ("ensemble.mode=stack",)],
    ids=["", "little room", "short memory", "stack"],
)
def test_hard_days_do_not_count_as_a_difference(tmp_path, change, seed):
    live = hard(configured(tmp_path, *HARD, *change), seed=seed)
    findings = examine(live.observed())
    assert findings.clean, findings.list()
    counts = findings.counts
    assert counts["diagnoses_incomplete"] > 5
    assert bool(live.observed().head["forgotten"]) == ("ensemble.max_remembered=60" in change)
    assert counts["labels_expired"] + counts["labels_evicted"] > 0
    assert counts["labels_conflict"] + counts["labels_unknown"] > 0
