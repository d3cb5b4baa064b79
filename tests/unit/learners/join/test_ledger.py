"""Each rule of the join, one case at a time; docs/join.md is the same in words."""

import json
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from learners.errors import LearnerError
from learners.join import (
    AMENDMENTS,
    COUNTERS,
    Amendment,
    Codec,
    Context,
    Diagnose,
    Expire,
    JoinRules,
    Label,
    Ledger,
    Prediction,
    Reason,
    Reject,
    Settle,
    Withdrawal,
)
from learners.join.ledger import TRANSITIONS, WAITS, Arrival, State
from tests.ledger_contents import dump_all, parked_labels


def rules(**changes):
    return JoinRules(**{"learners": 2, "fusion_timeout": 10, "label_ttl": 100, **changes})


def said(learner, label=1, at=0, name="a", payload="p"):
    return Prediction(at, name, learner, label, payload)


class Driver:
    """A ledger whose every batch is decided at once."""

    def __init__(self, **changes):
        self.ledger = Ledger(rules(**changes))

    def __call__(self, *events, now=0, **pace):
        step = self.ledger.apply(events, now, **pace)
        settled = self.ledger.settle(
            [f"decision on {diagnosis.id}" for diagnosis in step.diagnoses]
        )
        return [*step.diagnoses, *settled, *step.expiries, *step.rejections]

    def counted(self):
        return {name: n for name, n in self.ledger.counts.items() if n}


BOTH = said(0), said(1, label=0)
DIAGNOSED = Diagnose("a", 0, (1, 0), ("p", "p"), None, complete=True, missing=())


def settled(label=1, at=0, **changes):
    values = {"labels": (1, 0), "payloads": ("p", "p"), "late": (), "complete": True}
    values |= {"context": None, "decision": "decision on a", "diagnosed_at": 0}
    return Settle(id="a", at=at, label=label, **(values | changes))


# Diagnoses


def test_the_last_prediction_completes_a_diagnosis():
    drive = Driver()
    assert drive(said(0)) == []
    assert drive(said(1, label=0)) == [DIAGNOSED]
    assert drive.counted() == {"prediction_taken": 2, "diagnosed_complete": 1}


def test_without_the_last_prediction_the_diagnosis_is_made_at_the_timeout():
    drive = Driver()
    drive(said(1, at=5))
    assert drive(now=14) == []
    expected = Diagnose("a", 15, (-1, 1), (None, "p"), None, complete=False, missing=(0,))
    assert drive(now=15) == [expected]
    assert drive.counted() == {"prediction_taken": 1, "diagnosed_incomplete": 1}


def test_a_timeout_is_dated_when_it_was_due_however_late_the_clock_moves():
    drive = Driver()
    drive(said(0))
    late = drive(now=10_000)
    assert [type(event) for event in late] == [Diagnose, Expire]
    assert [event.at for event in late] == [10, 110]


def test_a_contextual_diagnosis_waits_for_its_context():
    drive = Driver(contextual=True)
    assert drive(*BOTH) == []
    (diagnosis,) = drive(Context(3, "a", "elderly"))
    assert (diagnosis.context, diagnosis.complete, diagnosis.missing) == ("elderly", True, ())


def test_a_context_may_come_first():
    drive = Driver(contextual=True)
    drive(Context(0, "a", "elderly"))
    (diagnosis,) = drive(*BOTH)
    assert (diagnosis.context, diagnosis.complete) == ("elderly", True)


def test_a_missing_context_makes_the_diagnosis_incomplete():
    drive = Driver(contextual=True)
    drive(*BOTH)
    (diagnosis,) = drive(now=10)
    assert (diagnosis.context, diagnosis.complete, diagnosis.missing) == (None, False, ())


def test_an_event_from_the_past_happens_now():
    drive = Driver()
    drive(now=50)
    drive(said(0, at=3))
    assert drive(now=59) == []
    assert [event.at for event in drive(now=60)] == [60]


# A backlog: what is older than `live`

BACKLOG = {"live": 1_000_000, "awaited": (0, 1)}


def test_a_learner_that_is_ahead_makes_nobody_late():
    drive = Driver(label_ttl=10_000)
    times = range(0, 1_000, 5)
    events = drive(*[said(0, at=at, name=f"p{at}") for at in times], **BACKLOG)
    assert events == []
    assert drive.ledger.clock == 0
    events = drive(*[said(1, at=at, name=f"p{at}") for at in times], **BACKLOG)
    assert [(diagnosis.id, diagnosis.at, diagnosis.complete) for diagnosis in events] == [
        (f"p{at}", at, True) for at in times
    ]


def test_a_learner_that_is_not_waited_for_does_not_hold_the_clock():
    drive = Driver()
    events = drive(said(0, at=5), said(0, at=50, name="b"), live=1_000_000, awaited=(0,))
    assert [(diagnosis.id, diagnosis.at, diagnosis.missing) for diagnosis in events] == [
        ("a", 15, (1,))
    ]


def test_what_was_skipped_is_given_up_when_all_have_passed_it():
    drive = Driver()
    drive(said(0, at=5), said(0, at=50, name="b"), **BACKLOG)
    (diagnosis,) = drive(said(1, at=50, name="b"), said(1, at=14, name="c"), **BACKLOG)[:1]
    assert (diagnosis.id, diagnosis.at, diagnosis.missing) == ("a", 15, (1,))


def test_what_is_live_moves_the_clock_alone():
    drive = Driver()
    (diagnosis,) = drive(said(0, at=5), said(0, at=50, name="b"), live=5, awaited=(0, 1))
    assert (diagnosis.id, diagnosis.at, diagnosis.missing) == ("a", 15, (1,))


@pytest.mark.parametrize("clock", [0, 400])
def test_a_label_that_is_read_before_its_patient_waits_from_its_own_time(clock):
    drive = Driver()
    drive(now=clock)
    assert drive(Label(700, "a", 1), Label(690, "b", 1), Label(750, "c", 1), **BACKLOG) == []
    assert drive.ledger.clock == clock
    again = Driver()
    again.ledger.restore(drive.ledger.dump_head(), dump_all(drive.ledger))
    events = again(said(0, at=699), said(1, at=699), **BACKLOG)
    assert settled(at=699, labels=(1, 1), diagnosed_at=699) in events
    assert again(now=799) == []
    assert [rejection.event.id for rejection in again(now=801)] == ["b"]
    assert [rejection.event.id for rejection in again(now=850)] == ["c"]


def test_a_label_of_a_backlog_is_late_by_its_own_time():
    drive = Driver()
    drive(*BOTH, said(0, name="b"), said(1, name="b"), **BACKLOG)
    in_time, late = Label(99, "a", 1), Label(100, "b", 1)
    events = drive(in_time, late, **BACKLOG)
    assert drive.ledger.clock == 0
    assert events == [
        settled(at=99),
        Expire("b", 0, Reason.EXPIRED),
        Reject(late, Reason.EXPIRED),
    ]


def test_settlements_of_a_backlog_have_times_in_their_order():
    drive = Driver()
    names = "abc"
    drive(*[said(learner, name=name) for name in names for learner in (0, 1)], **BACKLOG)
    events = drive(Label(9, "b", 1), Label(7, "a", 1), Label(8, "c", 1), **BACKLOG)
    assert [event.at for event in events] == [9, 9, 9]


def test_a_backlog_goes_on_after_a_restart():
    drive, again = Driver(label_ttl=10_000), Driver(label_ttl=10_000)
    drive(said(1, at=20, name="b"), said(0, at=500), **BACKLOG)
    again.ledger.restore(drive.ledger.dump_head(), dump_all(drive.ledger))
    for driver in (drive, again):
        events = driver(said(1, at=500), **BACKLOG)
        assert [(diagnosis.id, diagnosis.complete) for diagnosis in events] == [
            ("b", False),
            ("a", True),
        ]


# Repeated and late predictions and contexts


@pytest.mark.parametrize(
    ("again", "counter"),
    [
        (said(0), "prediction_duplicate"),
        (said(0, label=0), "prediction_conflict"),
        (said(0, payload="q"), "prediction_conflict"),
    ],
)
@pytest.mark.parametrize("before", [(said(0),), BOTH], ids=["open", "diagnosed"])
def test_the_first_prediction_of_a_learner_wins(before, again, counter):
    drive = Driver()
    drive(*before)
    assert drive(again) == []
    assert drive.ledger.counts[counter] == 1
    drive(*BOTH)
    assert drive(Label(0, "a", 1)) == [settled()]


def test_a_late_prediction_takes_its_loss_if_it_comes_before_the_label():
    drive = Driver()
    drive(said(0), now=10)
    assert drive(said(1, label=0)) == []
    late = settled(at=10, late=(1,), complete=False, diagnosed_at=10)
    assert drive(Label(0, "a", 1)) == [late]
    assert drive.ledger.counts["prediction_late"] == 1


def test_a_late_prediction_counts_within_the_batch_of_its_diagnosis_too():
    drive = Driver()
    (_, settlement) = drive(said(0), said(0, at=20, name="b"), said(1, label=0), Label(20, "a", 1))
    assert (settlement.labels, settlement.late) == ((1, 0), (1,))


@pytest.mark.parametrize(
    ("over", "counter"),
    [
        ([Label(0, "a", 1)], "prediction_settled"),
        ([Label(110, "b", 1)], "prediction_expired"),
    ],
)
def test_a_prediction_for_an_instance_that_is_over_is_dropped(over, counter):
    drive = Driver()
    drive(said(0), now=10)
    drive(*over)
    assert drive(said(1)) == []
    assert drive.ledger.counts[counter] == 1


@pytest.mark.parametrize(
    ("before", "counter"),
    [
        ([Context(0, "a", "x")], "context_duplicate"),
        ([Context(0, "a", "y")], "context_conflict"),
        (BOTH, "context_late"),
        ([*BOTH, Label(0, "a", 1)], "context_late"),
    ],
)
def test_only_the_first_timely_context_counts(before, counter):
    drive = Driver()
    drive(*before)
    assert drive(Context(0, "a", "x")) == []
    assert drive.ledger.counts[counter] == 1


# Labels


def test_a_label_settles_its_diagnosis():
    drive = Driver()
    drive(*BOTH)
    assert drive(Label(30, "a", 1)) == [settled(at=30)]
    assert drive.ledger.counts["label_matched"] == drive.ledger.counts["settled"] == 1


def test_a_label_in_the_batch_of_its_diagnosis_waits_for_the_decision():
    assert Driver()(*BOTH, Label(0, "a", 1)) == [DIAGNOSED, settled()]


@pytest.mark.parametrize("before", [(), (said(0),)], ids=["unknown", "open"])
def test_an_early_label_is_parked_until_the_diagnosis(before):
    drive = Driver()
    assert drive(*before, Label(0, "a", 1)) == []
    assert parked_labels(drive.ledger) == 1
    assert drive(*BOTH) == [DIAGNOSED, settled()]
    assert parked_labels(drive.ledger) == 0
    assert drive.ledger.counts["parked_label_settled"] == 1


def test_a_parked_label_settles_an_incomplete_diagnosis():
    drive = Driver()
    drive(Label(0, "a", 1), said(0))
    (_, settlement) = drive(now=10)
    assert (settlement.labels, settlement.complete) == ((1, -1), False)


def test_what_is_parked_for_nobody_is_rejected_as_unknown():
    drive = Driver()
    label, context = Label(0, "a", 1, "raw bytes"), Context(0, "a", "x")
    drive(label, context)
    assert drive(now=99) == []
    expected = [Reject(context, Reason.UNKNOWN), Reject(label, Reason.UNKNOWN)]
    assert drive(now=100) == expected
    assert drive.ledger.counts["parked_label_unknown"] == 1
    assert drive.ledger.counts["parked_context_unknown"] == 1
    assert drive.ledger.pending == 0


def test_a_parked_label_waits_its_full_time_even_behind_an_older_context():
    drive = Driver()
    drive(Context(0, "a", "x"), Label(90, "a", 1))
    assert drive(now=189) == []
    assert drive(*BOTH)[1].label == 1


def test_a_wait_that_begins_again_holds_up_no_other():
    drive = Driver()
    stray = Label(1, "b", 1)
    drive(Context(0, "a", "x"), stray, Label(50, "a", 1))
    assert drive(now=101) == [Reject(stray, Reason.UNKNOWN)]


@pytest.mark.parametrize("before", [(), BOTH], ids=["parked", "settled"])
def test_the_first_label_wins(before):
    drive = Driver()
    drive(*before, Label(0, "a", 1))
    assert drive(Label(1, "a", 1)) == []
    second = Label(1, "a", 0, "raw")
    assert drive(second) == [Reject(second, Reason.CONFLICT)]
    assert drive.ledger.counts["label_duplicate"] == drive.ledger.counts["label_conflict"] == 1


def test_a_diagnosis_without_a_label_expires():
    drive = Driver()
    drive(*BOTH)
    assert drive(now=99) == []
    assert drive(now=100) == [Expire("a", 100, Reason.EXPIRED)]
    label = Label(101, "a", 1)
    assert drive(label) == [Reject(label, Reason.EXPIRED)]
    assert drive.ledger.counts["expired"] == drive.ledger.counts["label_expired"] == 1


# Bounds


def test_at_the_limit_the_oldest_diagnosis_gives_way():
    drive = Driver(max_pending=2)
    drive(*BOTH, said(0, name="b"), said(1, name="b"))
    assert drive(said(0, name="c")) == [Expire("a", 0, Reason.EVICTED)]
    label = Label(0, "a", 1)
    assert drive(label) == [Reject(label, Reason.EVICTED)]
    assert drive.ledger.counts["evicted"] == drive.ledger.counts["label_evicted"] == 1


@pytest.mark.parametrize(
    ("newcomer", "kind"),
    [
        (said(0, name="b"), "prediction"),
        (Label(0, "b", 1), "label"),
        (Context(0, "b", "x"), "context"),
    ],
)
def test_a_newcomer_is_refused_if_nobody_can_give_way(newcomer, kind):
    drive = Driver(max_pending=1)
    drive(said(0))
    assert drive(newcomer) == [Reject(newcomer, Reason.PENDING_FULL)]
    assert drive.ledger.counts[f"{kind}_pending_full"] == 1
    assert len(drive(said(1))) == 1


def test_what_is_over_is_forgotten_oldest_first():
    drive = Driver(max_remembered=1)
    drive(*BOTH, Label(0, "a", 1), said(0, name="b"), said(1, name="b"), Label(0, "b", 1))
    assert drive.ledger.counts["forgotten"] == 1
    drive(Label(0, "b", 1), Label(0, "a", 1))
    assert drive.ledger.counts["label_duplicate"] == 1
    assert parked_labels(drive.ledger) == 1


def test_a_tighter_limit_applies_from_the_next_newcomer_on():
    wide = Driver()
    for name in "abc":
        wide(said(0, name=name), said(1, name=name))
    tight = Driver(max_pending=2)
    tight.ledger.restore(wide.ledger.dump_head(), dump_all(wide.ledger))
    gone = tight(said(0, name="d"))
    assert [(expiry.id, expiry.reason) for expiry in gone] == [("a", "evicted"), ("b", "evicted")]


def test_a_shorter_wait_applies_to_those_that_wait_already_and_time_goes_on():
    long = Driver()
    long(*BOTH, now=50)
    short = Driver(label_ttl=20)
    short.ledger.restore(long.ledger.dump_head(), dump_all(long.ledger))
    assert short(now=51) == [Expire("a", 50, Reason.EXPIRED)]


def _steps(pending):
    drive = Driver()
    for i in range(pending):
        drive(said(0, name=f"old {i}"), said(1, name=f"old {i}"))
    events = [Label(1, f"old {i}", 1) for i in range(5)]
    events += [said(i, name=f"new {n}", at=1) for n in range(5) for i in range(2)]
    calls = Counter()
    sys.setprofile(lambda frame, event, arg: calls.update([event]))
    try:
        drive(*events)
    finally:
        sys.setprofile(None)
    return calls


def test_an_event_costs_no_more_steps_when_many_are_pending():
    # In a process with no other threads: Python 3.11 can spin forever in a profiled function when
    # another thread asks for the interpreter.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        few, many = pool.map(_steps, [5, 2_000])
    assert few == many


# What the caller sees


def test_a_repeat_is_told_from_a_conflict_by_what_is_kept_of_it():
    codec = Codec(json.dumps, json.loads, keep=lambda payload: payload[:2])
    ledger = Ledger(rules(), codec)

    def take(*events):
        ledger.settle(["d"] * len(ledger.apply(events).diagnoses))

    take(*(said(i, payload=("rule", i, "said once")) for i in range(2)))
    take(said(0, payload=("rule", 0, "said otherwise")), said(1, payload=("other", 1, "")))
    assert ledger.counts["prediction_duplicate"] == ledger.counts["prediction_conflict"] == 1
    ledger.apply([Label(0, "a", 1)])
    (case,) = ledger.settle([])
    assert case.payloads == (["rule", 0], ["rule", 1])


def test_touched_adds_up_until_it_is_asked_for():
    ledger = Ledger(rules())
    for name in "ab":
        ledger.apply([said(0, name=name)])
        ledger.settle([])
    assert ledger.touched() == ["a", "b"]
    assert ledger.touched() == []


def test_touched_names_what_changed_and_dump_what_it_is_now():
    ledger = Ledger(rules(max_remembered=1), Codec(json.dumps, json.loads))
    ledger.apply([*BOTH, said(0, name="b")])
    ledger.settle(["d"])
    assert ledger.touched() == ["a", "b"]
    assert json.loads(ledger.dump("a"))[0] == "diagnosed"
    assert json.loads(ledger.dump("b"))[0] == "open"
    ledger.apply([Label(0, "a", 1)])
    ledger.settle([])
    assert ledger.touched() == ["a"]
    assert json.loads(ledger.dump("a"))[0] == "settled"
    ledger.apply([said(1, name="b"), Label(0, "b", 1), Label(0, "b", 1)])
    ledger.settle(["d"])
    assert ledger.touched() == ["b", "a"]
    assert ledger.dump("a") is None


def test_a_batch_is_settled_before_the_next_begins():
    ledger = Ledger(rules())
    with pytest.raises(LearnerError, match="one decision per diagnosis"):
        ledger.settle([])
    ledger.apply(BOTH)
    with pytest.raises(LearnerError, match="settle the last batch"):
        ledger.apply((), 5)
    with pytest.raises(LearnerError, match="before it is written down"):
        ledger.touched()
    with pytest.raises(LearnerError, match="one decision per diagnosis"):
        ledger.settle([])
    ledger.settle(["d"])
    assert ledger.apply((), 5).diagnoses == []


@pytest.mark.parametrize(
    "entry",
    [("open", 1, (0,), ("p",), None, -1, None), ("elsewhere", 1)],
    ids=["other learners", "other tag"],
)
def test_entries_that_do_not_fit_are_refused(entry):
    ledger = Ledger(rules())
    with pytest.raises(LearnerError, match="an entry was"):
        ledger.restore(ledger.dump_head(), [("a", entry)])


def test_only_a_new_ledger_is_restored():
    drive = Driver()
    drive(*BOTH)
    with pytest.raises(LearnerError, match="only a new ledger"):
        drive.ledger.restore(drive.ledger.dump_head(), [])


@pytest.mark.parametrize(
    "change",
    [
        {"learners": 0},
        {"fusion_timeout": 0},
        {"label_ttl": 0},
        {"max_pending": 0},
        {"max_remembered": -1},
    ],
)
def test_rules_that_make_no_sense_are_refused(change):
    with pytest.raises(LearnerError, match=next(iter(change))):
        rules(**change)


def test_more_changes_than_a_stamp_can_number_in_a_millisecond_keep_their_order(monkeypatch):
    monkeypatch.setattr("learners.join.ledger.STAMP_BITS", 2)
    drive = Driver(learners=1)
    names = [f"p{i}" for i in range(20)]
    drive(*(said(0, name=name) for name in names))
    assert [event.id for event in drive(now=1000)] == names


PAGE = (Path(__file__).parents[4] / "docs" / "join.md").read_text()

ROWS = {
    "a learner's first prediction": (Prediction, Arrival.FIRST),
    "the same prediction again": (Prediction, Arrival.SAME),
    "a different one of that learner": (Prediction, Arrival.OTHER),
    "first context": (Context, Arrival.FIRST),
    "the same context again": (Context, Arrival.SAME),
    "a different context": (Context, Arrival.OTHER),
    "first label": (Label, Arrival.FIRST),
    "the same label again": (Label, Arrival.SAME),
    "a different label": (Label, Arrival.OTHER),
    "an amendment, where there is no label": (Amendment, Arrival.FIRST),
    "an amendment to the same label": (Amendment, Arrival.SAME),
    "an amendment to another label": (Amendment, Arrival.OTHER),
    "a withdrawal, where there is no label": (Withdrawal, Arrival.FIRST),
    "a withdrawal of a label": (Withdrawal, Arrival.OTHER),
}


def documented_transitions():
    """The page's table, as {(event, arrival, state): what the cell says}."""
    table = re.search(r"^\| event \|.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)[0]
    header, _, *rows = table.splitlines()
    columns = [
        [State(name) for name in cell.strip().split(" or ")] for cell in header.split("|")[2:-1]
    ]
    cells = {}
    for row in rows:
        first, *rest = (cell.strip() for cell in row.split("|")[1:-1])
        for states, cell in zip(columns, rest, strict=True):
            for state in states:
                cells[(*ROWS[first], state)] = cell
    return cells


def test_the_page_has_the_transitions_of_the_table():
    cells = documented_transitions()
    assert len(cells) == len(ROWS) * (len(State) - 1)
    for (event, arrival, state), cell in cells.items():
        move = TRANSITIONS[event][state].get(arrival)
        if "`" not in cell:
            assert move is None
            continue
        assert f"`{move.counter}`" in cell
        assert ("rejected" in cell) == (move.reason is not None)
        assert ("dropped" in cell) == (not move.keeps and move.reason is None)
        if move.enters in {State.PARKED, State.SETTLED}:
            assert {State.PARKED: "parked", State.SETTLED: "settles"}[move.enters] in cell


def test_the_table_has_a_move_for_every_event_in_every_state_and_counts_each_kind_by_its_name():
    for event, states in TRANSITIONS.items():
        assert set(states) == set(State)
        for moves in states.values():
            assert moves
            for move in moves.values():
                assert move.counter in (*COUNTERS, *AMENDMENTS)
                assert move.counter.startswith(event.__name__.lower())
    assert all(wait.rule in JoinRules.__slots__ for wait in WAITS.values())


def test_entries_that_do_not_fit_leave_a_new_ledger_as_it_was():
    drive, ledger = Driver(), Ledger(rules(learners=3))
    drive(*BOTH, now=7)
    before = ledger.dump_head()
    with pytest.raises(LearnerError, match="3"):
        ledger.restore(drive.ledger.dump_head(), dump_all(drive.ledger))
    assert ledger.dump_head() == before


def test_every_counter_is_documented():
    assert set(re.findall(r"`([a-z_]+)`", PAGE)) >= {*COUNTERS, *AMENDMENTS}
    page = (Path(__file__).parents[4] / "docs" / "join.md").read_text()
    assert set(re.findall(r"`([a-z_]+)`", page)) >= {*COUNTERS, *AMENDMENTS}


@pytest.mark.parametrize("codec", [None, Codec(pack=json.dumps, unpack=json.loads)])
def test_a_clock_that_has_run_ahead_is_set_back_and_waits_end_in_time(codec):
    run, ahead = Driver(), 1_000_000
    run.ledger = Ledger(rules(), codec)
    run(said(0, name="old", at=5), said(1, name="old", at=5))
    run(Label(ahead, "parked", 1), said(0, name="open", at=ahead))
    run(said(0, name="done", at=ahead), said(1, name="done", at=ahead))
    run.ledger.touched()
    run.ledger.set_back(50)
    assert run.ledger.clock == 50
    assert sorted(run.ledger.touched()) == ["done", "old", "open", "parked"]
    restored = Ledger(rules(), codec)
    restored.restore(run.ledger.dump_head(), list(dump_all(run.ledger)))
    for ledger in (run.ledger, restored):
        run.ledger = ledger
        assert [diagnosis.id for diagnosis in run(now=62)] == ["open"]  # its fusion time-out is 10
        assert run(Label(63, "done", 1), said(0, name="new", at=63))[0].label == 1
        assert [diagnosis.id for diagnosis in run(now=80)] == ["new"]
        events = run(now=200)
        assert {getattr(event, "id", None) or event.event.id for event in events} == {
            "open",
            "parked",
            "new",
        }


def test_setting_a_sound_clock_back_changes_nothing():
    run = Driver()
    run(said(0, at=5), said(0, name="b", at=7), said(1, name="b", at=7), Label(8, "c", 1))
    head, entries = run.ledger.dump_head(), list(dump_all(run.ledger))
    run.ledger.touched()
    run.ledger.set_back(8)
    assert run.ledger.touched() == []
    assert (run.ledger.dump_head(), list(dump_all(run.ledger))) == (head, entries)
