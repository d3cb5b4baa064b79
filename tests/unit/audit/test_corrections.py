"""An audit recounts corrected labels exactly, and finds corrections that went wrong."""

import numpy as np
import pytest

from audit.end_to_end import recompute
from audit.metric_values import audit_metrics
from audit.partition_tables import live_tables
from audit.replay.replay import replayed
from schemas.records import Label
from schemas.writing import encode
from tests.inline_pipeline import JOINT, configured, lived

MANY = 60
CHANGES = {
    "wm": (),
    "joint": JOINT,
    "stack": ("ensemble.mode=stack",),
    "committee": ("ensemble.mode=committee",),
    "few": ("ensemble.max_amendable=5", "ensemble.max_remembered=20"),
}


def corrected(settings):
    """A stream some of whose labels are amended, withdrawn, given again, or corrected early."""
    live = lived(settings, MANY, lag=4, labelled=MANY - 2)
    live.now = 1_000_000 + 10 * (MANY + 10)

    def say(name, label, amends=False):
        value = encode(Label(name, label, live.now, amends))
        live.publish(live.topics.labels, b"", value, at=live.now)
        live.now += 5

    for k in range(MANY - 12, MANY - 2):
        say(f"p{k}", "ill", amends=True)
    for k in range(MANY - 10, MANY - 6):
        say(f"p{k}", None)
    say(f"p{MANY - 10}", "well")
    say(f"p{MANY - 9}", "well", amends=True)
    say(f"p{MANY - 9}", "well", amends=True)
    say(f"p{MANY - 5}", "well")
    say(f"p{MANY - 1}", "ill", amends=True)
    say(f"p{MANY - 2}", None)
    say("nobody", "ill", amends=True)
    say("nobody", "well", amends=True)
    say("gone", "ill")
    say("gone", None)
    return live


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_an_audit_recounts_what_was_corrected(tmp_path, changes):
    observed = corrected(configured(tmp_path, *changes)).observed()
    findings, again = recompute(observed)
    audit_metrics(observed.settings, [again], [live_tables(observed)], findings)
    assert findings.clean, findings.list()
    assert findings.tables["ensemble scores"].values
    assert observed.amendments.corrections > 1


def test_an_audit_finds_a_correction_that_is_lost_or_counted_twice(tmp_path):
    live = corrected(configured(tmp_path))
    topic = live.topics.feedback("a")
    amending = [k for k, b in enumerate(live.published[topic]) if b'"amends"' in b.values[0]]
    for change in ({"without": (topic, amending[0])}, {"twice": (topic, amending[0])}):
        findings, _ = recompute(live.observed(**change))
        assert not findings.clean, change


def test_an_audit_finds_a_label_of_the_state_that_is_not_the_last_word(tmp_path):
    live = corrected(configured(tmp_path))
    labels = live.published[live.topics.labels]
    position = max(
        k for k, b in enumerate(labels) if b'"amends"' in b.values[0] and b"p5" in b.values[0]
    )
    findings, _ = recompute(live.observed(without=(live.topics.labels, position)))
    assert not findings.clean


def test_a_replay_follows_corrections(tmp_path):
    live = corrected(configured(tmp_path))
    replay = replayed([live.logs()], live.settings)
    assert replay.replayed.labelled == replay.live.labelled
    for name, matrix in replay.live.confusion.items():
        np.testing.assert_array_equal(matrix, replay.replayed.confusion[name])
    assert replay.live.bound is None, "the theorem does not cover labels that were corrected"
