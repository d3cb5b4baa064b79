import json
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from learners.join import (
    Amendment,
    Codec,
    Context,
    JoinRules,
    Label,
    Ledger,
    Prediction,
    Reason,
    Step,
    Withdrawal,
)
from tests.ledger_contents import dump_all, parked_labels
from tests.reference.ledger import SlowLedger
from tests.strategies import cuts

JSON = Codec(pack=json.dumps, unpack=json.loads)
codecs = st.sampled_from([None, JSON])
few = st.integers(1, 6)
rules = st.builds(
    JoinRules,
    learners=st.integers(1, 3),
    fusion_timeout=few,
    label_ttl=st.sampled_from([1, 4, 15, 60]),
    contextual=st.booleans(),
    max_pending=st.one_of(few, st.just(1000)),
    max_remembered=st.one_of(st.integers(0, 4), st.just(1000)),
    amend_ttl=st.sampled_from([0, 3, 30, 1000]),
    max_amendable=st.one_of(st.integers(0, 3), st.just(1000)),
)
KINDS = ("prediction", "prediction", "prediction", "context", "label", "amendment", "withdrawal")


@st.composite
def streams(draw, ids="abcd", learners=3):
    """Events of few instances, so that they meet in every order; some come out of time."""
    events, now = [], 0
    for _ in range(draw(st.integers(1, 50))):
        now += draw(st.sampled_from([0, 0, 0, 1, 2, 7, 20]))
        at = max(0, now - draw(st.sampled_from([0, 0, 0, 3])))
        name, value = draw(st.sampled_from(ids)), draw(st.integers(0, 1))
        kind = draw(st.sampled_from(KINDS))
        if kind == "prediction":
            events.append(Prediction(at, name, draw(st.integers(0, learners - 1)), value, "p"))
        elif kind == "context":
            events.append(Context(at, name, f"context {value}"))
        elif kind == "amendment":
            events.append(Amendment(at, name, value, "raw"))
        elif kind == "withdrawal":
            events.append(Withdrawal(at, name, "raw"))
        else:
            events.append(Label(at, name, value, "raw"))
    return events


cases = rules.flatmap(lambda rule: st.tuples(st.just(rule), streams(learners=rule.learners)))


def batches(events, draw):
    """Cut a stream anywhere, or after every event."""
    if draw(st.booleans()):
        return [[event] for event in events]
    return [events[start:stop] for start, stop in pairwise(draw(cuts(len(events))))]


def decisions(diagnoses):
    """Decide by what is known at the diagnosis, so that a second run decides alike."""
    return [f"{diagnosis.id} at {diagnosis.at}" for diagnosis in diagnoses]


class Run:
    """A ledger, everything it ever said, and what a caller would have on disk."""

    def __init__(self, rules, codec=None, **pace):
        self.rules, self.codec, self.pace = rules, codec, pace
        self.ledger = Ledger(rules, codec)
        self.said, self.settled = Step(), []
        self.disk, self.head = {}, self.ledger.dump_head()

    def batch(self, events, now=0):
        step = self.ledger.apply(events, now, **self.pace)
        self.settled += self.ledger.settle(decisions(step.diagnoses))
        self.said.diagnoses += step.diagnoses
        self.said.expiries += step.expiries
        self.said.rejections += step.rejections
        self.said.corrections += step.corrections
        for name in self.ledger.touched():
            self.disk[name] = self.ledger.dump(name)
            if self.disk[name] is None:
                del self.disk[name]
        self.head = json.loads(json.dumps(self.ledger.dump_head()))

    def crash(self, order):
        """Lose the ledger and read it back from disk, in any order of keys."""
        self.ledger = Ledger(self.rules, self.codec)
        self.ledger.restore(self.head, [(name, self.disk[name]) for name in order(self.disk)])

    def everything(self):
        ledger = self.ledger
        return self.said, self.settled, ledger.dump_head(), dict(dump_all(ledger)), ledger.sizes()


@given(cases, codecs, st.data())
def test_the_ledger_does_what_the_slow_one_does(case, codec, data):
    rule, events = case
    fast, slow = Ledger(rule, codec), SlowLedger(rule)
    for batch in [*batches(events, data.draw), []]:
        now = data.draw(st.sampled_from([0, 0, slow.clock + 3, slow.clock + 30]))
        step = fast.apply(batch, now)
        assert (step.diagnoses, step.expiries, step.rejections) == slow.apply(batch, now)
        decided = decisions(step.diagnoses)
        assert fast.settle(decided) == slow.settle(decided)
        assert step.corrections == slow.corrections
        assert fast.counts == {name: slow.counts[name] for name in fast.counts}
        assert fast.clock == slow.clock
        assert fast.sizes() == {state: len(slow.among(state)) for state in fast.sizes()}
        assert parked_labels(fast) == sum(
            bool(row.parked_label) for row in slow.among("parked") + slow.among("open")
        )


@given(cases, codecs, st.data())
def test_batch_cuts_change_nothing(case, codec, data):
    rule, events = case
    whole, cut = Run(rule, codec), Run(rule, codec)
    whole.batch(events)
    for batch in batches(events, data.draw):
        cut.batch(batch)
    assert cut.everything() == whole.everything()


@given(cases, st.data())
def test_moving_the_clock_in_steps_or_at_once_is_the_same(case, data):
    rule, events = case
    once, steps = Run(rule), Run(rule)
    for run in (once, steps):
        run.batch(events)
    now = once.ledger.clock
    for step in sorted(data.draw(st.lists(st.integers(0, 40)))):
        steps.batch([], now + step)
    for run in (once, steps):
        run.batch([], now + 40)
    assert steps.everything() == once.everything()


@given(cases, codecs, st.data())
def test_crash_and_restore_at_any_point_change_nothing(case, codec, data):
    rule, events = case
    whole, broken = Run(rule, codec), Run(rule, codec)
    for batch in batches(events, data.draw):
        whole.batch(batch)
        if data.draw(st.booleans()):
            broken.ledger.apply(batch)  # a batch that is lost half way
            broken.crash(lambda disk: data.draw(st.permutations(list(disk))))
        broken.batch(batch)
        assert broken.disk == dict(dump_all(broken.ledger))
    assert broken.everything() == whole.everything()


@given(cases, codecs, st.data())
def test_a_backlog_gives_up_no_label_before_its_time_and_survives_crashes(case, codec, data):
    rule, events = case
    awaited = tuple(data.draw(st.sets(st.integers(0, rule.learners - 1))))
    whole, crashing = (Run(rule, codec, live=10**6, awaited=awaited) for _ in range(2))
    numbered = [
        replace(event, payload=number) if isinstance(event, Label | Amendment) else event
        for number, event in enumerate(events)
    ]
    for batch in batches(numbered, data.draw):
        count = len(whole.said.rejections)
        whole.batch(batch)
        crashing.batch(batch)
        crashing.crash(lambda disk: data.draw(st.permutations(sorted(disk))))
        for rejection in whole.said.rejections[count:]:
            if rejection.reason is Reason.UNKNOWN and isinstance(rejection.event, Label):
                assert events[rejection.event.payload].at + rule.label_ttl <= whole.ledger.clock
    assert crashing.everything() == whole.everything()


WEIGHED = Codec(pack=json.dumps, unpack=json.loads, weigh=len, shrink=lambda _: "")


@given(cases, st.integers(0, 60), st.data())
def test_what_comes_early_never_takes_more_than_its_bytes_and_changes_nothing(case, room, data):
    rule, events = case
    narrow, wide = Run(replace(rule, max_early=room), WEIGHED), Run(rule, WEIGHED)
    for batch in batches(events, data.draw):
        narrow.batch(batch)
        wide.batch(batch)
        if data.draw(st.booleans()):
            narrow.crash(lambda disk: data.draw(st.permutations(list(disk))))
        entries = [json.loads(packed) for packed in narrow.disk.values()]
        held = [entry[4:7:2] for entry in entries if entry[0] == "open"]
        held_bytes = sum(len(payload or "") for payloads in held for payload in payloads)
        assert narrow.ledger.early_bytes == held_bytes <= room
    for run in (narrow, wide):
        run.ids = [event.id for event in [*run.said.diagnoses, *run.said.expiries, *run.settled]]
    assert narrow.ids == wide.ids
    compared = {"context_duplicate", "context_conflict"}  # nothing is left of these to compare
    for name in set(wide.ledger.counts) - compared:
        assert narrow.ledger.counts[name] == wide.ledger.counts[name]


@given(cases)
def test_every_event_is_accounted_for_once(case):
    rule, events = case
    run = Run(rule)
    run.batch(events)
    counts, sizes = run.ledger.counts, run.ledger.sizes()
    for event in (Prediction, Context, Label, Amendment, Withdrawal):
        kind = f"{event.__name__.lower()}_"
        counted = sum(n for name, n in counts.items() if name.startswith(kind))
        assert counted == sum(isinstance(item, event) for item in events)
    rejected = ["conflict", "expired", "evicted", "pending_full", "final"]
    kinds = ["label", "amendment", "withdrawal"]
    assert len(run.said.rejections) == (
        sum(counts.get(f"{kind}_{reason}", 0) for reason in rejected for kind in kinds)
        + counts["prediction_pending_full"]
        + counts["context_pending_full"]
        + counts["parked_label_unknown"]
        + counts["parked_context_unknown"]
    )
    diagnosed = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    assert diagnosed == len(run.said.diagnoses)
    assert len(run.settled) == counts["settled"]
    assert len(run.said.expiries) == counts["expired"] + counts["evicted"]
    assert diagnosed == counts["settled"] + len(run.said.expiries) + sizes["diagnosed"]
    matched = counts["label_matched"] + counts["amendment_matched"]
    assert counts["settled"] == matched + counts["parked_label_settled"]
    changes = ("amendment_taken", "withdrawal_taken", "label_again")
    assert len(run.said.corrections) == sum(counts[name] for name in changes)
    assert sizes["over"] == counts["settled"] + len(run.said.expiries) - counts["forgotten"]


@given(cases, st.data())
def test_sizes_stay_within_their_bounds(case, data):
    rule, events = case
    run = Run(rule)
    for batch in batches(events, data.draw):
        run.batch(batch)
        assert run.ledger.pending <= rule.max_pending
        assert run.ledger.sizes()["over"] <= rule.max_remembered
        assert run.ledger.sizes()["amendable"] <= rule.max_amendable
        assert len(run.disk) <= rule.max_pending + rule.max_remembered


@given(cases)
def test_no_diagnosis_is_made_of_nothing_and_all_say_what_is_missing(case):
    rule, events = case
    run = Run(rule)
    run.batch(events)
    for diagnosis in run.said.diagnoses:
        assert any(label >= 0 for label in diagnosis.labels)
        assert diagnosis.missing == tuple(
            i for i, label in enumerate(diagnosis.labels) if label < 0
        )
        assert diagnosis.complete == (
            not diagnosis.missing and bool(diagnosis.context or not rule.contextual)
        )


@given(st.data())
def test_any_order_or_repetition_of_labels_settles_each_decision_once(data):
    names = [f"p{i}" for i in range(data.draw(st.integers(1, 6)))]
    truth = {name: data.draw(st.integers(0, 2)) for name in names}
    heard = [Prediction(1, name, i, 0, "p") for name in names for i in range(2)]
    labels = [Label(1, name, truth[name]) for name in names]
    labels += data.draw(st.lists(st.sampled_from(labels), max_size=8))
    events = data.draw(st.permutations(heard + labels))
    run = Run(JoinRules(learners=2, fusion_timeout=5, label_ttl=10))
    for batch in batches(events, data.draw):
        run.batch(batch)
    assert sorted((settlement.id, settlement.label) for settlement in run.settled) == sorted(
        truth.items()
    )
    assert all(settlement.decision == f"{settlement.id} at 1" for settlement in run.settled)
    assert run.ledger.counts["label_duplicate"] == len(labels) - len(names)
    assert run.said.rejections == []


@given(cases, st.data())
def test_a_label_settles_nothing_twice_whatever_comes(case, data):
    rule, events = case
    assume(rule.max_remembered >= len(events))
    run = Run(rule)
    for batch in batches(events, data.draw):
        run.batch(batch)
    settled = [settlement.id for settlement in run.settled]
    over = settled + [expiry.id for expiry in run.said.expiries]
    assert len(over) == len(set(over))


@given(st.data())
def test_any_interleaving_of_corrections_ends_with_the_last_word(data):
    """Whatever comes when, taking back and recounting leaves one count of the last label."""
    words = st.tuples(st.sampled_from("ab"), st.sampled_from(["label", "amend", "withdraw"]),
                      st.integers(0, 2))  # fmt: skip
    spoken = data.draw(st.lists(words, max_size=12))
    events = [
        {"label": Label(1, name, label), "amend": Amendment(1, name, label)}.get(
            kind, Withdrawal(1, name)
        )
        for name, kind, label in spoken
    ]
    for name in "ab":
        for learner in range(2):
            at = data.draw(st.integers(0, len(events)))
            events.insert(at, Prediction(1, name, learner, 0, "p"))
    run = Run(JoinRules(learners=2, fusion_timeout=5, label_ttl=10))
    for batch in batches(events, data.draw):
        run.batch(batch)
    counted = {"a": [], "b": []}
    for settlement in run.settled:
        counted[settlement.id].append(settlement.label)
    for correction in run.said.corrections:
        if correction.was >= 0:
            counted[correction.case.id].remove(correction.was)
        if correction.case.label >= 0:
            counted[correction.case.id].append(correction.case.label)
    for name, labels in counted.items():
        assert labels == last_word(
            [(kind, label) for patient, kind, label in spoken if patient == name]
        )


def last_word(words):
    current = []
    for kind, label in words:
        if kind == "withdraw":
            current = []
        elif kind == "amend" or not current:
            current = [label]
    return current


SIZED = Codec(pack=json.dumps, unpack=json.loads, size=len)


@given(cases, st.integers(0, 600), st.data())
def test_what_is_kept_for_corrections_never_takes_more_than_its_bytes(case, room, data):
    rule, events = case
    run = Run(replace(rule, max_amendable_bytes=room), SIZED)
    for batch in batches(events, data.draw):
        run.batch(batch)
        if data.draw(st.booleans()):
            run.crash(lambda disk: data.draw(st.permutations(list(disk))))
        entries = [json.loads(packed) for packed in run.disk.values()]
        held = sum(len(entry[-1]) for entry in entries if entry[0] == "settled")
        assert run.ledger.amendable_bytes == held <= room
