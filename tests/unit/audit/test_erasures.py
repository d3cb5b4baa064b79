"""A patient is erased, at any moment of its way: nothing is kept, and the audit stays exact."""

import pytest

from agents.erasures import digest_of, erasure
from audit.end_to_end import recompute
from audit.findings import Kind
from schemas.records import Label
from schemas.writing import encode
from streams.engine.state import CountsTable
from tests.inline_pipeline import Inline, configured, lived

ROW = {"x": 0.2, "y": 0.3, "z": 0.7364519283641}


def forget(live, name="gone"):
    live.publish(live.topics.erasures, b"", erasure(digest_of(name), live.now))


def kept(live):
    """Return every key and value of every table, as the changelogs have them."""
    live.restart()
    return [
        part
        for agent in live.agents.values()
        for table in agent.tables.values()
        if not isinstance(table, CountsTable)
        for pair in table.items()
        for part in pair
    ]


def says(label, amends=False):
    def publish(live):
        value = encode(Label("gone", label, live.now, amends))
        live.publish(live.topics.labels, b"gone", value, at=live.now)
        live.now += 5

    return publish


STEPS = {
    "instance": lambda live: live.patient("gone", ROW, unseen_by=["a"]),
    "diagnosis": lambda live: live.patient("gone", ROW),
    "label": says("ill"),
    "amend": says("well", amends=True),
    "withdraw": says(None),
    "wait": lambda live: live.wait("2h"),
    "forget": forget,
    "restart": lambda live: live.restart(),
}
WAYS = [
    "forget",
    "instance forget",
    "instance forget diagnosis",
    "diagnosis forget",
    "diagnosis forget label",
    "diagnosis label forget",
    "diagnosis label forget label diagnosis",
    "label forget",
    "label forget diagnosis",
    "label instance forget",
    "label instance forget diagnosis label",
    "diagnosis wait forget label",
    "diagnosis forget forget restart label",
    "forget restart diagnosis label wait",
    "diagnosis forget wait",
    "diagnosis label amend forget",
    "diagnosis label amend amend restart forget amend label",
    "diagnosis label withdraw forget",
    "diagnosis label withdraw label forget withdraw",
    "diagnosis label forget amend withdraw",
    "diagnosis amend forget",
    "diagnosis forget amend withdraw",
    "diagnosis withdraw forget label",
    "amend forget diagnosis",
    "label amend instance forget diagnosis",
    "label withdraw diagnosis forget",
    "diagnosis label amend wait forget amend",
]


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_kept_and_the_audit_is_exact(tmp_path, way, context):
    overrides = [
        "ensemble.mode=ch",
        'ensemble.context={features=[{name="y", low=0, high=1}], cuts=2}',
    ] * context
    live = lived(configured(tmp_path, *overrides), n=20, lag=3)
    live.now = 1_000_000 + 10_000
    for step in way.split():
        STEPS[step](live)
    observed = live.observed()
    findings, tables = recompute(observed)
    assert findings.list() == []
    assert tables is not None
    corrected = not {"amend", "withdraw"}.isdisjoint(way.split())
    notes = [check.note for check in findings.tables.values() if check.note]
    assert not notes or corrected, "an erasure leaves nothing out of the comparison"
    assert findings.counts["patients_erased"] == 1
    assert not [part for part in kept(live) if b"gone" in part], "the id is nowhere"
    assert all(letter.key != b"gone" for letter in live.dead_letters)


def test_nobody_else_is_touched(tmp_path):
    settings = configured(tmp_path)
    plain, live = lived(settings, n=40, lag=5), lived(settings, n=40, lag=5)
    live.now = 1_000_000 + 10_000
    forget(live, "p30")
    before, after = plain.observed(), live.observed()
    for agent, state in before.states.items():
        for name, table in state.counts.items():
            if name not in {"totals", "amendments"}:  # which say how many wait
                assert (
                    table.items()[1].tolist()
                    == after.states[agent].counts[name].items()[1].tolist()
                ), name
    assert recompute(after)[0].total(Kind.LOST) == 0


def test_a_record_that_is_not_an_erasure_is_a_dead_letter(tmp_path):
    live = Inline(configured(tmp_path))
    live.publish(live.topics.erasures, b"", b"{}")
    live.publish(live.topics.erasures, b"", None)
    assert {letter.reason for letter in live.dead_letters} == {"missing_field", "empty"}
    assert not live.published[live.topics.feedback("a")]
