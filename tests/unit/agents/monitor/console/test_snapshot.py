"""What a page gets to see: figures as they are in the scores, no id in full."""

import re
from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.monitor.console.activity import Activity
from agents.monitor.console.newest_records import DeadLetterReasons, NewestRecords
from agents.monitor.console.snapshot import about, diagnosis, shortened, snapshot, token_of
from agents.monitor.scores import Accuracy
from learners.scores.wording import WHY
from schemas.records import Diagnosis, Opinion, TrackRecord
from streams.engine.tasks.task import Phase, TaskStatus
from streams.kafka.topics import Topics
from tests.unit.agents.monitor.console.looks import overview
from tests.unit.agents.toy import SETTINGS

ID = "patient-0123456789"


def made(name=ID, label="yes", votes=None, **weights):
    opinions = {
        "left": Opinion("yes", "always", False, 40, 0.9, 0.8, 0.97),
        "right": Opinion("no", "always", True, 0),
    }
    return Diagnosis(name, label, True, (), "wm", weights, opinions, 1_700_000_000_000, None, votes)


@given(st.text(min_size=1, max_size=300))
def test_no_id_is_shown_in_full(name):
    shown = shortened(name)
    assert len(shown) <= 5
    assert shown.removeprefix("…") != name
    assert 2 * len(shown.removeprefix("…")) <= len(name)


def test_neighbours_of_one_run_look_different():
    ids = [f"8877d5d6-{n}" for n in range(600, 700)]
    assert len(set(map(shortened, ids))) == len(ids)


def test_the_share_is_the_weight_of_those_who_agree():
    assert diagnosis(SETTINGS, made(left=0.75, right=0.25))["share"] == 0.75
    assert diagnosis(SETTINGS, made(label="no", left=0.75, right=0.25))["share"] == 0.25
    # Where the experts are not the learners, what the experts said counts.
    experts = made(votes={"stack": "yes", "hedge": "yes"}, stack=0.5, hedge=0.5)
    assert diagnosis(SETTINGS, experts)["share"] == 1.0
    assert diagnosis(SETTINGS, made())["share"] is None


def test_a_diagnosis_shows_votes_and_confidence():
    shown = diagnosis(SETTINGS, made(left=1.0, right=0.0))
    assert [vote["learner"] for vote in shown["votes"]] == ["left", "right"]
    left, right = shown["votes"]
    assert (left["label"], left["accuracy"], left["low"], left["high"]) == ("yes", 0.9, 0.8, 0.97)
    assert (right["exploring"], right["trials"], right["accuracy"]) == (True, 0, None)


@pytest.mark.parametrize(
    ("trials", "shown"), [(4, (None, None, None, None)), (5, (5, 0.6, 0.2, 0.9))]
)
def test_what_few_patients_led_to_is_withheld(trials, shown):
    assert SETTINGS.privacy.min_cube == 5
    opinions = {"left": Opinion("yes", "always", False, trials, 0.6, 0.2, 0.9)}
    (vote,) = diagnosis(SETTINGS, msgspec.structs.replace(made(left=1.0), learners=opinions))[
        "votes"
    ]
    assert tuple(vote[key] for key in ("trials", "accuracy", "low", "high")) == shown


def test_a_diagnosis_says_what_to_know_before_relying_on_it():
    plain = diagnosis(SETTINGS, made())
    assert (plain["untaught"], plain["referred"], plain["complete"]) == (False, False, True)
    assert (plain["chance"], plain["track"], plain["why"]) == (None, None, [])
    record = msgspec.structs.replace(
        made(),
        answer="refer",
        cannot_exclude=("no", "yes"),
        chance={"no": 0.4, "yes": 0.6},
        track_record=TrackRecord(40, 30, 0.6, 0.9),
        why=("few_labels", "learner_missing", "something_new"),
        complete=False,
        missing=("right",),
        learned=7,
    )
    shown = diagnosis(SETTINGS, record)
    assert (shown["untaught"], shown["referred"], shown["complete"]) == (True, True, False)
    assert shown["chance"] == {"no": 0.4, "yes": 0.6}
    assert shown["track"] == [40, 30, 0.6, 0.9]
    assert shown["why"] == [
        "Too few labels had been learned when it was made.",
        "A learner did not answer in time.",
        "something new",
    ]


def test_every_code_of_the_documentation_has_a_sentence():
    page = (Path(__file__).parents[5] / "docs" / "confidence.md").read_text()
    table = page.partition("## Untaught")[2].partition("## ")[0]
    codes = re.findall(r"`([a-z]+_[a-z]+)`", table)
    assert set(codes) - {"min_labels"} == set(WHY)


def test_a_token_tells_diagnoses_apart_and_not_their_ids():
    assert token_of("a", ID) != token_of("a", ID + "x")
    assert token_of("a", ID) != token_of("b", ID)
    assert token_of("n" * 200, ID)


def test_a_snapshot_can_be_encoded_and_holds_the_scores():
    state = overview(
        left=3,
        right=4,
        learned=2,
        diagnosed=5,
        behind=(7, 0, 0),
        rates={"ensemble": {"per": 0.5, "fpr": None, "fnr": 0.5}, "left": {"per": 0.5}},
        accuracy={"left": Accuracy(0.5, 0.1, 0.9)},
        weights={"left": 0.6, "right": 0.4},
        regret=0.5,
        bound=2.5,
    )
    pulse = Activity(Topics.of(SETTINGS))
    pulse.take(state, 0.0)
    tail = NewestRecords(SETTINGS)
    tail.latest = [made(left=0.6, right=0.4)]
    tail.letters.add("empty", "toy.labels")
    own = TaskStatus("ensemble", 0, Phase.WAITING, "no broker", 3, 9, 2, {}, 1.26)
    shown = orjson.loads(orjson.dumps(snapshot(SETTINGS, state, pulse, tail, [own])))
    assert shown["rates"]["ensemble"]["per"] == 0.5
    assert shown["accuracy"]["left"] == [0.5, 0.1, 0.9]
    assert (shown["regret"], shown["bound"], shown["labelled"]) == (0.5, 2.5, 2)
    assert (shown["diagnosed"], shown["labels"]["waiting"], shown["labels"]["settled"]) == (5, 3, 2)
    assert shown["health"].keys() == {"left", "right", "ensemble"}
    assert shown["dead"] == {
        "counted": 1,
        "all": True,
        "reasons": [
            {
                "reason": "empty",
                "topic": "labels",
                "meaning": "the value is empty, or there is none (a tombstone)",
                "count": 1,
            }
        ],
    }
    task = shown["tasks"][2]
    assert (task["phase"], task["reason"], task["reopenings"]) == ("waiting", "no broker", 2)
    assert shown["tasks"][0] == {
        "agent": "local.left",
        "partition": 0,
        "holder": "host w1",
        "behind": 7,
    }
    assert ID not in str(shown)


def test_what_is_said_first_can_be_encoded():
    hello = orjson.loads(orjson.dumps(about(SETTINGS, "w1", 7, "0.1.0")))
    assert [learner["name"] for learner in hello["learners"]] == ["left", "right"]
    assert hello["contextual"] is True
    assert hello["positive"] == "yes"


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 20))
def test_reasons_are_those_of_the_newest_letters(reasons, most):
    letters = DeadLetterReasons(most)
    for reason in reasons:
        letters.add(reason, "labels")
    newest = reasons[-most:]
    assert {reason: count for (reason, _), count in letters.counts.items()} == {
        reason: newest.count(reason) for reason in set(newest)
    }
    assert letters.counted == len(newest)
    assert letters.all_counted is (len(reasons) <= most)


@pytest.mark.parametrize("name", ["p", "p1", "abcdefghijkl"])
def test_short_ids_are_shortened_too(name):
    assert shortened(name) != f"…{name}"
