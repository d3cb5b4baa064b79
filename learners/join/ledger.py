"""The ledger: predictions, contexts, late labels and their corrections, joined by instance id.

Rules for this file:

- It is pure: no input or output, no wall clock, no randomness. Time comes in with the events and as
  `now`. Events come in, effects go out, and neither is changed afterwards.
- `TRANSITIONS` says what an event does to an instance in each state, `WAITS` what the passing of
  time does. Code below carries a move out; it never decides which one it is.
- A call at the wrong moment raises and changes nothing. Nothing else is undone: a caller whose
  batch fails drops the ledger and restores one from what it wrote down after the last batch that
  succeeded, exactly as after a crash.
- An event takes the same number of steps however many instances are pending.

A batch takes two calls. `apply` takes the events and returns what they call for; the caller fuses
all diagnoses of the batch at once, and `settle` takes those decisions and returns what can be
learned. So a label that came before its decision, parked or in the same batch, is no special case.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.join.effects import Correct, Diagnose, Expire, Reason, Reject, Settle, Step
from learners.join.entries import (
    EVICTED,
    EXPIRED,
    STAMP_BITS,
    WITHDRAWN,
    Case,
    Codec,
    DiagnosedEntry,
    Entry,
    OpenEntry,
    OverEntry,
    Packed,
    Settled,
    SettledEntry,
    entry_of,
)
from learners.join.events import (
    Amendment,
    Context,
    Erase,
    Event,
    Label,
    LabelEvent,
    Prediction,
    Withdrawal,
    record,
)


class State(StrEnum):
    """What the ledger knows of an instance. All states after DIAGNOSED are called *over*."""

    NEW = "new"
    """Nothing, or nothing any more."""
    NO_ROOM = "no_room"
    """Nothing, and `max_pending` others are waiting, none of which can give way."""
    PARKED = "parked"
    """A label or a context came, and no prediction yet."""
    OPEN = "open"
    """At least one prediction came."""
    DIAGNOSED = "diagnosed"
    """It waits for its label."""
    SETTLED = "settled"
    """Its label came and was learned from; it may still be corrected."""
    WITHDRAWN = "withdrawn"
    """The label that was learned from was withdrawn; another may come."""
    FINAL = "final"
    """Its label was learned from, and can no longer be corrected."""
    LAPSED = "lapsed"
    """Its label was withdrawn, and another can no longer come."""
    EXPIRED = "expired"
    """No label came in time."""
    EVICTED = "evicted"
    """It gave way to newer instances."""


class Arrival(StrEnum):
    """How an event compares with what its instance has of that kind, and of that learner."""

    FIRST = "first"
    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of an event, and of its instance.

    counter   counts the event
    keeps     whether the instance keeps what the event says
    enters    the state that the instance enters; a new wait begins. None: it stays where it is
    reason    why the event is handed back; None if it is not
    """

    counter: str
    keeps: bool = False
    enters: State | None = None
    reason: Reason | None = None


def _keep(counter: str, enters: State | None = None) -> Move:
    return Move(counter, keeps=True, enters=enters)


def _drop(counter: str) -> Move:
    return Move(counter)


def _reject(counter: str, reason: Reason) -> Move:
    return Move(counter, reason=reason)


def _always(move: Move) -> dict[Arrival, Move]:
    return dict.fromkeys(Arrival, move)


NEW, NO_ROOM, PARKED, OPEN, DIAGNOSED = list(State)[:5]
SETTLED, FINAL = State.SETTLED, State.FINAL
FIRST, SAME, OTHER = Arrival

_REPEATED_PREDICTION = {
    SAME: _drop("prediction_duplicate"),
    OTHER: _drop("prediction_conflict"),
}
_REPEATED_CONTEXT = {
    SAME: _drop("context_duplicate"),
    OTHER: _drop("context_conflict"),
}
_REPEATED_LABEL = {
    SAME: _drop("label_duplicate"),
    OTHER: _reject("label_conflict", Reason.CONFLICT),
}

TRANSITIONS: dict[type[Event], dict[State, Mapping[Arrival, Move]]] = {
    Prediction: {
        NEW: {FIRST: _keep("prediction_taken", OPEN)},
        NO_ROOM: {FIRST: _reject("prediction_pending_full", Reason.PENDING_FULL)},
        PARKED: {FIRST: _keep("prediction_taken", OPEN)},
        OPEN: {FIRST: _keep("prediction_taken"), **_REPEATED_PREDICTION},
        DIAGNOSED: {FIRST: _keep("prediction_late"), **_REPEATED_PREDICTION},
        SETTLED: _always(_drop("prediction_settled")),
        State.WITHDRAWN: _always(_drop("prediction_settled")),
        FINAL: _always(_drop("prediction_settled")),
        State.LAPSED: _always(_drop("prediction_settled")),
        State.EXPIRED: _always(_drop("prediction_expired")),
        State.EVICTED: _always(_drop("prediction_expired")),
    },
    Context: {
        NEW: {FIRST: _keep("context_taken", PARKED)},
        NO_ROOM: {FIRST: _reject("context_pending_full", Reason.PENDING_FULL)},
        PARKED: {FIRST: _keep("context_taken", PARKED), **_REPEATED_CONTEXT},
        OPEN: {FIRST: _keep("context_taken"), **_REPEATED_CONTEXT},
        DIAGNOSED: _always(_drop("context_late")),
        SETTLED: _always(_drop("context_late")),
        State.WITHDRAWN: _always(_drop("context_late")),
        FINAL: _always(_drop("context_late")),
        State.LAPSED: _always(_drop("context_late")),
        State.EXPIRED: _always(_drop("context_late")),
        State.EVICTED: _always(_drop("context_late")),
    },
    Label: {
        NEW: {FIRST: _keep("label_parked", PARKED)},
        NO_ROOM: {FIRST: _reject("label_pending_full", Reason.PENDING_FULL)},
        PARKED: {FIRST: _keep("label_parked", PARKED), **_REPEATED_LABEL},
        OPEN: {FIRST: _keep("label_parked"), **_REPEATED_LABEL},
        DIAGNOSED: {FIRST: _keep("label_matched", SETTLED)},
        SETTLED: _REPEATED_LABEL,
        State.WITHDRAWN: {FIRST: _keep("label_again", SETTLED)},
        FINAL: _REPEATED_LABEL,
        State.LAPSED: {FIRST: _reject("label_final", Reason.FINAL)},
        State.EXPIRED: _always(_reject("label_expired", Reason.EXPIRED)),
        State.EVICTED: _always(_reject("label_evicted", Reason.EVICTED)),
    },
    Amendment: {
        NEW: {FIRST: _keep("amendment_parked", PARKED)},
        NO_ROOM: {FIRST: _reject("amendment_pending_full", Reason.PENDING_FULL)},
        PARKED: {
            FIRST: _keep("amendment_parked", PARKED),
            SAME: _drop("amendment_duplicate"),
            OTHER: _keep("amendment_replaced", PARKED),
        },
        OPEN: {
            FIRST: _keep("amendment_parked"),
            SAME: _drop("amendment_duplicate"),
            OTHER: _keep("amendment_replaced"),
        },
        DIAGNOSED: {FIRST: _keep("amendment_matched", SETTLED)},
        SETTLED: {SAME: _drop("amendment_duplicate"), OTHER: _keep("amendment_taken", SETTLED)},
        State.WITHDRAWN: {FIRST: _keep("amendment_taken", SETTLED)},
        FINAL: {
            SAME: _drop("amendment_duplicate"),
            OTHER: _reject("amendment_final", Reason.FINAL),
        },
        State.LAPSED: {FIRST: _reject("amendment_final", Reason.FINAL)},
        State.EXPIRED: {FIRST: _reject("amendment_expired", Reason.EXPIRED)},
        State.EVICTED: {FIRST: _reject("amendment_evicted", Reason.EVICTED)},
    },
    Withdrawal: {
        NEW: {FIRST: _drop("withdrawal_unmatched")},
        NO_ROOM: {FIRST: _drop("withdrawal_unmatched")},
        PARKED: {FIRST: _drop("withdrawal_unmatched"), OTHER: _keep("withdrawal_parked")},
        OPEN: {FIRST: _drop("withdrawal_unmatched"), OTHER: _keep("withdrawal_parked")},
        DIAGNOSED: {FIRST: _drop("withdrawal_unmatched")},
        SETTLED: {OTHER: _keep("withdrawal_taken", State.WITHDRAWN)},
        State.WITHDRAWN: {FIRST: _drop("withdrawal_unmatched")},
        FINAL: {OTHER: _reject("withdrawal_final", Reason.FINAL)},
        State.LAPSED: {FIRST: _drop("withdrawal_unmatched")},
        State.EXPIRED: {FIRST: _drop("withdrawal_unmatched")},
        State.EVICTED: {FIRST: _drop("withdrawal_unmatched")},
    },
}
"""By the kind of event and the state of its instance. A withdrawal is `first` where there is no
label that it could withdraw, and `other` where there is one.

What follows is decided by what the instance has, not by the event: an open instance that has all it
needs is diagnosed, a diagnosed one that has its label is settled. At `max_pending` the oldest
diagnosed one is evicted for a new one, at `max_remembered` the oldest that is over is forgotten.
"""


class Wait(NamedTuple):
    """How long an instance may stay in a state, by the name of the rule, and what it becomes."""

    rule: str
    becomes: State


WAITS = {
    OPEN: Wait("fusion_timeout", DIAGNOSED),
    DIAGNOSED: Wait("label_ttl", State.EXPIRED),
    PARKED: Wait("label_ttl", NEW),
    SETTLED: Wait("amend_ttl", FINAL),
}
"""In this order if several end at the same time. Every queue holds waits of one length and time
never goes back, so the oldest entry of a queue is always the next whose wait ends."""

COUNTERS = (
    # Every event adds one to exactly one of these …
    "prediction_taken",
    "prediction_late",
    "prediction_duplicate",
    "prediction_conflict",
    "prediction_settled",
    "prediction_expired",
    "prediction_pending_full",
    "context_taken",
    "context_duplicate",
    "context_conflict",
    "context_late",
    "context_pending_full",
    "label_matched",
    "label_parked",
    "label_duplicate",
    "label_conflict",
    "label_expired",
    "label_evicted",
    "label_pending_full",
    # … and these say what became of instances and of parked events.
    "diagnosed_complete",
    "diagnosed_incomplete",
    "settled",
    "expired",
    "evicted",
    "forgotten",
    "parked_label_settled",
    "parked_label_unknown",
    "parked_context_unknown",
)
"""What the ledger counts, in the order in which counts are stored."""

AMENDMENTS = (
    # Every correction adds one to exactly one of these, as does a label that follows a withdrawal …
    "amendment_matched",
    "amendment_parked",
    "amendment_replaced",
    "amendment_taken",
    "amendment_duplicate",
    "amendment_final",
    "amendment_expired",
    "amendment_evicted",
    "amendment_pending_full",
    "withdrawal_taken",
    "withdrawal_parked",
    "withdrawal_unmatched",
    "withdrawal_final",
    "label_again",
    "label_final",
    # … and these say what each led to. `unlearned` is how many settled instances have another
    # label now, or none, than the one that was learned from them at first.
    "unlearned",
    "amend_given_up",
)
"""What the ledger counts of corrections, in the order in which these counts are stored."""

TAKEN = ("amendment_taken", "withdrawal_taken", "label_again")
"""Those of labels that had been learned, and now are others, or none."""


@dataclass(frozen=True, slots=True)
class JoinRules:
    """How long to wait and how much to keep. Times are milliseconds of stream time.

    learners        how many local learners a complete diagnosis needs
    fusion_timeout  from an instance's first prediction to the diagnosis without the rest
    label_ttl       from the diagnosis until its label is given up; also how long a label or a
                    context without any prediction is parked
    contextual      a complete diagnosis needs a context as well
    max_pending     instances waiting for a prediction, a diagnosis or a label
    max_remembered  instances that are over, kept to tell a repeated label from a new one
    amend_ttl       from an instance's first label until it can no longer be corrected
    max_amendable   settled instances that are kept in full, so that they can be corrected
    max_amendable_bytes   bytes that these may take
    max_early       bytes for the payloads of labels and contexts that come before the diagnosis;
                    beyond it they are shrunk
    """

    learners: int
    fusion_timeout: int
    label_ttl: int
    contextual: bool = False
    max_pending: int = 1_000_000
    max_remembered: int = 1_000_000
    max_early: int = 64 << 20
    amend_ttl: int = 7 * 86_400_000
    max_amendable: int = 100_000
    max_amendable_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        for name in ("learners", "fusion_timeout", "label_ttl", "max_pending"):
            if getattr(self, name) < 1:
                raise LearnerError(f"join: {name} must be at least 1")
        bounds = ("amend_ttl", "max_amendable", "max_amendable_bytes")
        for name in ("max_remembered", "max_early", *bounds):
            if getattr(self, name) < 0:
                raise LearnerError(f"join: {name} must be 0 or greater")


_OVERLOOKED: dict[type[Event], str] = {
    Prediction: "prediction_expired",
    Context: "context_late",
    Label: "label_duplicate",
    Amendment: "amendment_duplicate",
    Withdrawal: "withdrawal_unmatched",
}
"""How records of an erased instance are counted."""

_Queue: TypeAlias = OrderedDict[str, Any]
_PREDICTIONS, _CONTEXTS = TRANSITIONS[Prediction], TRANSITIONS[Context]
_OUTCOMES = {EXPIRED: State.EXPIRED, EVICTED: State.EVICTED, WITHDRAWN: State.LAPSED}


@record
class _Closed:
    """A settlement that waits for the decisions of its batch."""

    name: str
    at: int
    label: int
    entry: Case | Packed


@record
class _Changed:
    """A correction that waits for the decisions of its batch."""

    at: int
    name: str
    label: int
    was: int
    of: Settled


class Ledger:
    """Joins predictions, contexts and labels by instance id under `rules`."""

    def __init__(self, rules: JoinRules, codec: Codec | None = None) -> None:
        self.rules = rules
        self.codec = codec or Codec()
        self.clock = 0
        self.counts = dict.fromkeys((*COUNTERS, *AMENDMENTS), 0)
        # What parked and open instances hold of early labels and contexts, and how many of these
        # were shrunk since this ledger was made.
        self.early_bytes = self.shrunk = 0
        # Each queue in the order of stamps, oldest first. OrderedDict and not dict: finding the
        # oldest key of a dict walks over the holes that deleted keys left.
        self._parked: OrderedDict[str, Case] = OrderedDict()
        self._open: OrderedDict[str, Case] = OrderedDict()
        # A Case until the batch that diagnosed it is settled, packed from then on.
        self._diagnosed: OrderedDict[str, Case | Packed] = OrderedDict()
        # Settled until the batch that changed it is settled, packed from then on.
        self._over: OrderedDict[str, Settled | Packed] = OrderedDict()
        # Those of them that can be corrected, with the bytes that this takes.
        self._amendable: OrderedDict[str, int] = OrderedDict()
        self.amendable_bytes = 0
        queues: tuple[_Queue, ...] = (
            self._open,
            self._diagnosed,
            self._parked,
            self._amendable,
        )
        self._waits: list[tuple[_Queue, int, State]] = [
            (queue, getattr(rules, WAITS[state].rule), WAITS[state].becomes)
            for state, queue in zip(WAITS, queues, strict=True)
        ]
        self._last_stamp = self._last_opened = self._last_parked = self._settled_at = 0
        # The time of each learner's newest prediction.
        self._newest = [0] * rules.learners
        # No wait ends before this, not even one that has yet to begin.
        self._due = 0
        # The batch between `apply` and `settle`.
        self._in_batch = False
        self._step = Step()
        self._undecided: list[tuple[str, Case]] = []
        self._closed: list[_Closed] = []
        self._changed: list[_Changed] = []
        self._unpacked: dict[str, None] = {}
        self._touched: dict[str, None] = {}

    # One batch.

    def apply(
        self,
        events: Iterable[Event | Erase],
        now: int = 0,
        *,
        live: int = 0,
        awaited: Sequence[int] = (),
    ) -> Step:
        """Take a batch of events, then move the clock to `now` if it is behind.

        An event moves the clock to its time. But one from before `live` is read from a backlog,
        where one learner may be far ahead of another: then the clock is how far all the `awaited`
        learners have come. An event older than the clock counts as happening now. `settle` must
        follow.
        """
        if self._in_batch:
            raise LearnerError("ledger: settle the last batch before the next")
        self._in_batch, self._step, newest = True, Step(), self._newest
        for event in events:
            if isinstance(event, Prediction):
                if event.at > newest[event.learner]:  # noqa: PLR1730 - for every prediction
                    newest[event.learner] = event.at
                if event.at > self.clock:
                    self._follow(event.at, live, awaited)
                self._predict(event)
                continue
            if event.at > self.clock and event.at >= live:
                self._move_clock(event.at)
            if isinstance(event, Erase):
                self._erase(event.id)
            elif isinstance(event, Context):
                self._place(event)
            else:
                self._label(event)
        if now > self.clock:
            self._move_clock(now)
        return self._step

    @property
    def corrections(self) -> int:
        """How often a label that had been learned was amended, withdrawn, or given again."""
        return sum(self.counts[name] for name in TAKEN)

    def settle(self, decisions: Sequence[Any]) -> list[Settle]:
        """Take one decision per diagnosis of the batch, and return what its labels settle."""
        if not self._in_batch or len(decisions) != len(self._undecided):
            raise LearnerError("ledger: settle takes one decision per diagnosis of the last batch")
        codec = self.codec
        for (name, case), decision in zip(self._undecided, decisions, strict=True):
            case.decision = decision
            if self._diagnosed.get(name) is case:
                self._diagnosed[name] = case.packed(codec)
        settled = [self._settlement(closed) for closed in self._closed]
        self._step.corrections += map(self._correction, self._changed)
        self._pack_settled()
        self._in_batch, self._undecided, self._closed, self._changed = False, [], [], []
        return settled

    def _pack_settled(self) -> None:
        """Pack what this batch has settled or corrected; give up the oldest if it is too much."""
        codec = self.codec
        for name in self._unpacked:
            settled = self._over.get(name)
            if isinstance(settled, Settled):
                self._over[name] = settled.packed(codec)
                self._weigh_amendable(name, codec.size(settled.entry))
        self._unpacked = {}
        while self.amendable_bytes > self.rules.max_amendable_bytes:
            self._give_up_amending()

    # Time.

    def due(self, now: int) -> bool:
        """Tell whether a wait ends by `now`, so that moving the clock there has effects."""
        return now > self.clock and self._due <= now and self._next_deadline(now) <= now

    def set_back(self, now: int) -> None:
        """Correct a clock that has run ahead: what began to wait later than `now` begins now.

        Such a clock was moved by records or by a machine whose time was wrong. Without this, waits
        that begin now would end only when time has caught up with it.
        """
        self.clock, self._due = min(self.clock, now), 0
        self._settled_at = min(self._settled_at, now)
        self._newest = [min(at, now) for at in self._newest]
        latest = ((now + 1) << STAMP_BITS) - 1
        self._last_stamp = min(self._last_stamp, latest)
        self._last_opened = min(self._last_opened, latest)
        self._last_parked = min(self._last_parked, latest)
        for packed in (self._diagnosed, self._over):
            for name, entry in packed.items():
                fields = entry_of(self.codec.unpack(entry))
                changed = fields
                if isinstance(changed, SettledEntry) and changed.at > now:
                    changed = changed._replace(at=now)
                if changed.stamp > latest:
                    changed = changed._replace(stamp=self._stamp())
                if changed is not fields:
                    packed[name] = self.codec.pack(changed)
                    self._touched[name] = None
        for cases, stamp in ((self._open, self._stamp_open), (self._parked, self._stamp_parked)):
            for name, case in cases.items():
                if case.stamp > latest:
                    case.stamp = stamp(now)
                    self._touched[name] = None

    def _follow(self, at: int, live: int, awaited: Sequence[int]) -> None:
        """Let a prediction of time `at` move the clock."""
        if at < live and awaited:
            newest = self._newest
            at = min([newest[learner] for learner in awaited])
        if at > self.clock:
            self._move_clock(at)

    def _move_clock(self, now: int) -> None:
        """Move the clock to `now`; on the way end every wait, in the order of their deadlines."""
        while self._due <= now:
            self._due = self._next_deadline(now)
            if self._due <= now:
                # Rules that became stricter between two runs may leave deadlines in the past.
                self.clock = max(self.clock, self._due)
                self._end_waits()
        self.clock = now

    def _next_deadline(self, now: int) -> int:
        """Return the earliest deadline there is, or can be for what comes from `now` on."""
        shortest = min(max(length, 1) for _, length, _ in self._waits)
        deadlines = [self._oldest(queue) + length for queue, length, _ in self._waits if queue]
        return min([now + shortest, *deadlines])

    def _end_waits(self) -> None:
        """End the waits whose deadline has come."""
        for queue, length, becomes in self._waits:
            since = self.clock - length
            while queue and self._oldest(queue) <= since:
                name, entry = queue.popitem(last=False)
                if becomes is DIAGNOSED:
                    self._diagnose(name, entry)
                elif becomes is NEW:
                    self._give_up(name, entry)
                elif becomes is FINAL:
                    self._make_final(name, entry)
                else:
                    self._expire(name, Reason.EXPIRED)

    def _oldest(self, queue: _Queue) -> int:
        """Return when the oldest entry of a queue began to wait."""
        name, entry = next(iter(queue.items()))
        return self._settled_since(name) if queue is self._amendable else self._began(entry)

    def _settled_since(self, name: str) -> int:
        """Return when the first label of an instance was learned; these times never decrease."""
        over = self._over.get(name)
        if over is None:
            return 0  # it was erased meanwhile
        since: int = over.at if isinstance(over, Settled) else self.codec.unpack(over)[3]
        return since

    def _began(self, entry: Case | Packed) -> int:
        """Return when an entry began to wait."""
        stamp: int = entry.stamp if isinstance(entry, Case) else self.codec.unpack(entry)[1]
        return stamp >> STAMP_BITS

    # Stamps, each larger than all earlier ones of its kind. In a backlog events are ahead of the
    # clock, and an instance waits from the time of its own event.

    def _stamp(self) -> int:
        self._last_stamp = stamp = _after(self._last_stamp, self.clock)
        return stamp

    def _stamp_open(self, at: int) -> int:
        self._last_opened = stamp = _after(self._last_opened, max(self.clock, at))
        return stamp

    def _stamp_parked(self, at: int) -> int:
        self._last_parked = stamp = _after(self._last_parked, max(self.clock, at))
        return stamp

    # Events: find the instance, look the move up, carry it out.

    def _find(self, name: str, *, enters: bool = True) -> tuple[State, Any]:
        """Return the state of an instance and its entry, or its outcome if it is over for good.

        A new instance that enters makes room for itself, if it can.
        """
        case = self._open.get(name)
        if case is not None:
            return OPEN, case
        entry = self._diagnosed.get(name)
        if entry is not None:
            return DIAGNOSED, entry
        over = self._over.get(name)
        if over is not None:
            return self._find_over(over)
        case = self._parked.get(name)
        if case is not None:
            return PARKED, case
        return (NEW if not enters or self._make_room() else NO_ROOM), None

    def _find_over(self, over: Settled | Packed) -> tuple[State, Any]:
        if not isinstance(over, Settled):
            tag, *fields = self.codec.unpack(over)
            if tag == "over":
                outcome: int = fields[1]
                return _OUTCOMES.get(outcome, FINAL), outcome
            over = Settled(*fields)
        return (State.WITHDRAWN if over.outcome == WITHDRAWN else SETTLED), over

    def _take(self, event: Event, move: Move) -> bool:
        """Count an event and hand it back if it is rejected; tell whether it is kept."""
        self.counts[move.counter] += 1
        if move.keeps:
            self._touched[event.id] = None
        elif move.reason is not None:
            self._step.rejections.append(Reject(event, move.reason))
        return move.keeps

    def _predict(self, event: Prediction) -> None:
        name, learner = event.id, event.learner
        state, case = OPEN, self._open.get(name)
        if case is None:
            state, case = self._find(name)
        packed = state is DIAGNOSED and not isinstance(case, Case)
        if packed:
            case = Case.of(DiagnosedEntry(*self.codec.unpack(case)))
        arrival = FIRST
        if (state is OPEN or state is DIAGNOSED) and case.labels[learner] != MISSING:
            arrival = self._compare(event, case)
        move = _PREDICTIONS[state][arrival]
        if not self._take(event, move):
            return
        if move.enters is OPEN:
            case = self._open_case(event, case)
        case.labels[learner] = event.label
        case.payloads[learner] = event.payload
        if state is not DIAGNOSED:
            case.heard += 1
            if case.heard == self.rules.learners:
                self._diagnose_if_complete(name, case)
            return
        # It missed the diagnosis; its learner still takes the loss.
        case.late = (*case.late, learner)
        if packed:
            self._diagnosed[name] = case.packed(self.codec)

    def _compare(self, event: Prediction, case: Case) -> Arrival:
        """Tell a repeated prediction from a different one of the same learner."""
        if case.labels[event.learner] != event.label:
            return OTHER
        return SAME if self.codec.same(case.payloads[event.learner], event.payload) else OTHER

    def _place(self, event: Context) -> None:
        state, case = self._find(event.id)
        arrival = FIRST
        if (state is OPEN or state is PARKED) and case.context is not None:
            arrival = SAME if self.codec.same_context(case.context, event.payload) else OTHER
        move = _CONTEXTS[state][arrival]
        if not self._take(event, move):
            return
        if move.enters is PARKED:
            case = self._park_case(event, case)
        case.context = self._early(event.payload)
        self._diagnose_if_complete(event.id, case)

    def _label(self, event: LabelEvent) -> None:
        says = MISSING if isinstance(event, Withdrawal) else event.label
        if event.at > self.clock:
            self._expire_before(event)
        state, entry = self._find(event.id, enters=says != MISSING)
        known = MISSING
        if state is SETTLED:
            known = entry.outcome
        elif state is FINAL:
            known = entry
        elif state is OPEN or state is PARKED:
            known = entry.label
        arrival = FIRST if known == MISSING else SAME if known == says else OTHER
        move = TRANSITIONS[type(event)][state][arrival]
        if not self._take(event, move):
            return
        if isinstance(entry, Settled):
            self._change(event.id, entry, says, event.at)
        elif move.enters is SETTLED:
            del self._diagnosed[event.id]
            self._settle(event.id, says, entry, event.at)
        else:
            self._park_label(event, says, entry, move)

    def _park_label(self, event: LabelEvent, label: int, case: Case | None, move: Move) -> None:
        """Keep a label until the diagnosis, in place of what was said before; or keep none."""
        if case is not None and case.label_payload is not None:
            self.early_bytes -= self.codec.weigh(case.label_payload)
        if move.enters is PARKED:
            case = self._park_case(event, case)
        assert case is not None  # noqa: S101 - a label that stays where it is has an instance
        case.label, case.label_payload = label, None
        if label != MISSING:
            case.label_payload = self._early(event.payload)
        elif not case.heard and case.context is None:
            del self._parked[event.id]

    def _early(self, payload: Any) -> Any:
        """Return the payload of an early label or context, shrunk if there is no room for it."""
        size = self.codec.weigh(payload)
        if self.early_bytes + size > self.rules.max_early:
            self.shrunk += 1
            return self.codec.shrink(payload)
        self.early_bytes += size
        return payload

    def _early_size(self, case: Case) -> int:
        """Return how much of `early_bytes` a parked or open instance takes."""
        payloads = (case.context, case.label_payload)
        return sum(self.codec.weigh(payload) for payload in payloads if payload is not None)

    def _expire_before(self, label: LabelEvent) -> None:
        """End the wait of an instance whose label, or its correction, comes too late.

        The clock need not be there yet: in a backlog it is behind the times of the records.
        """
        entry = self._diagnosed.get(label.id)
        if entry is not None and self._began(entry) + self.rules.label_ttl <= label.at:
            del self._diagnosed[label.id]
            self._expire(label.id, Reason.EXPIRED)
        size = self._amendable.get(label.id)
        if size is not None and self._settled_since(label.id) + self.rules.amend_ttl <= label.at:
            del self._amendable[label.id]
            self._make_final(label.id, size)

    # Moves into a state, each with its effect and its count.

    def _open_case(self, event: Prediction, parked: Case | None) -> Case:
        """Open an instance with its first prediction."""
        stamp = self._stamp_open(event.at)
        if parked is None:
            case = Case(stamp, self.rules.learners)
        else:
            case = self._parked.pop(event.id)
            case.stamp = stamp
        self._open[event.id] = case
        return case

    def _park_case(self, event: Context | LabelEvent, parked: Case | None) -> Case:
        """Park an instance without predictions; its wait begins, or begins again."""
        if parked is None:
            stamp = self._stamp_parked(event.at)
            parked = self._parked[event.id] = Case(stamp, self.rules.learners)
        parked.stamp = self._stamp_parked(event.at)
        self._parked.move_to_end(event.id)
        return parked

    def _diagnose_if_complete(self, name: str, case: Case) -> None:
        rules = self.rules
        if case.heard == rules.learners and (case.context is not None or not rules.contextual):
            del self._open[name]
            self._diagnose(name, case)

    def _diagnose(self, name: str, case: Case) -> None:
        """Call for a diagnosis with what is there; a label that is there already settles it."""
        missing, context = case.missing(), case.context
        if context is not None or case.label_payload is not None:
            self.early_bytes -= self._early_size(case)
        complete = not missing and (context is not None or not self.rules.contextual)
        case.complete = complete
        case.stamp = self._stamp()
        self._touched[name] = None
        self._undecided.append((name, case))
        labels, payloads = tuple(case.labels), tuple(case.payloads)
        self._step.diagnoses.append(
            Diagnose(name, self.clock, labels, payloads, context, complete, missing)
        )
        self.counts["diagnosed_complete" if complete else "diagnosed_incomplete"] += 1
        if case.label == MISSING:
            self._diagnosed[name] = case
        else:
            self.counts["parked_label_settled"] += 1
            self._settle(name, case.label, case)

    def _settle(self, name: str, label: int, entry: Case | Packed, at: int = 0) -> None:
        """Settle a diagnosed instance; the effect waits for the batch's decisions.

        The times of settlements never decrease; in a backlog they are the times of their labels.
        """
        self._settled_at = max(self._settled_at, self.clock, at)
        self._closed.append(_Closed(name, self._settled_at, label, entry))
        if self.rules.amend_ttl and self.rules.max_amendable:
            fields = self._stamp(), label, self._settled_at, label, self.counts["settled"], entry
            self.amendable_bytes -= self._amendable.pop(name, 0)
            if isinstance(entry, Case):  # its decision is not known yet
                self._amendable[name], self._unpacked[name] = 0, None
                self._remember(name, Settled(*fields))
            else:
                self._amendable[name] = size = self.codec.size(entry)
                self.amendable_bytes += size
                self._remember(name, self.codec.pack(("settled", *fields)))
            while len(self._amendable) > self.rules.max_amendable:
                self._give_up_amending()
        else:
            self._end(name, label)
        self.counts["settled"] += 1

    def _change(self, name: str, settled: Settled, label: int, at: int) -> None:
        """Give a settled instance another label, or none."""
        self._settled_at = max(self._settled_at, self.clock, at)
        was = MISSING if settled.outcome == WITHDRAWN else settled.outcome
        self.counts["unlearned"] += (label != settled.taught) - (was != settled.taught)
        settled.outcome = WITHDRAWN if label == MISSING else label
        self._changed.append(_Changed(self._settled_at, name, label, was, settled))
        # It keeps its place: the time in which it can be corrected began with its first label.
        self._over[name] = settled
        self._unpacked[name] = self._touched[name] = None

    def _make_final(self, name: str, size: int) -> None:
        """Keep no more of a settled instance than its label."""
        self.amendable_bytes -= size
        self._touched[name] = None
        over = self._over.get(name)
        if over is None:
            return
        if isinstance(over, Settled):
            stamp, outcome = over.stamp, over.outcome
        else:
            _, stamp, outcome, *_ = self.codec.unpack(over)
        self._over[name] = self.codec.pack(OverEntry("over", stamp, outcome))

    def _give_up_amending(self) -> None:
        """Make the oldest instance that can be corrected final, for lack of room."""
        self.counts["amend_given_up"] += 1
        self._make_final(*self._amendable.popitem(last=False))

    def _weigh_amendable(self, name: str, size: int) -> None:
        self.amendable_bytes += size - self._amendable[name]
        self._amendable[name] = size

    def _expire(self, name: str, reason: Reason) -> None:
        """Give up a diagnosis that has left its queue."""
        self.counts[reason] += 1
        self._step.expiries.append(Expire(name, self.clock, reason))
        self._end(name, EXPIRED if reason is Reason.EXPIRED else EVICTED)

    def _erase(self, name: str) -> None:
        """Drop whatever is kept of an instance; a diagnosis that waits for its label expires.

        What was parked is counted as if no prediction had come, but is not handed back.
        """
        self._touched[name] = None
        case = self._parked.pop(name, None) or self._open.pop(name, None)
        if case is not None:
            self.early_bytes -= self._early_size(case)
            self.counts["parked_context_unknown"] += case.context is not None
            self.counts["parked_label_unknown"] += case.label != MISSING
        if self._diagnosed.pop(name, None) is not None:
            self._expire(name, Reason.EXPIRED)
        if self._over.pop(name, None) is not None:
            self.amendable_bytes -= self._amendable.pop(name, 0)
            self.counts["forgotten"] += 1

    def overlook(self, events: Iterable[Event]) -> None:
        """Count events of erased instances, which change nothing."""
        for event in events:
            self.counts[_OVERLOOKED[type(event)]] += 1

    def ids(self) -> Iterator[str]:
        """Return the ids of all instances of which anything is kept."""
        return chain(self._parked, self._open, self._diagnosed, self._over)

    def holds_label(self, name: str) -> bool:
        """Tell whether a label waits for the diagnosis of an instance."""
        case = self._open.get(name) or self._parked.get(name)
        return case is not None and case.label != MISSING

    def _give_up(self, name: str, case: Case) -> None:
        """Reject what was parked for an instance for which no prediction came."""
        self._touched[name] = None
        self.early_bytes -= self._early_size(case)
        at = case.stamp >> STAMP_BITS
        rejections = self._step.rejections
        if case.context is not None:
            self.counts["parked_context_unknown"] += 1
            rejections.append(Reject(Context(at, name, case.context), Reason.UNKNOWN))
        if case.label != MISSING:
            self.counts["parked_label_unknown"] += 1
            label = Label(at, name, case.label, case.label_payload)
            rejections.append(Reject(label, Reason.UNKNOWN))

    def _end(self, name: str, outcome: int) -> None:
        """Keep no more than the outcome of an instance that is over."""
        self._remember(name, self.codec.pack(OverEntry("over", self._stamp(), outcome)))

    def _remember(self, name: str, entry: Settled | Packed) -> None:
        """Keep the entry of an instance that is over; the oldest are forgotten."""
        self._touched[name] = None
        self._over[name] = entry
        while len(self._over) > self.rules.max_remembered:
            oldest, _ = self._over.popitem(last=False)
            self._touched[oldest] = None
            self.amendable_bytes -= self._amendable.pop(oldest, 0)
            self.counts["forgotten"] += 1

    def _make_room(self) -> bool:
        """Let the oldest diagnoses give way at `max_pending`: only learning is lost with them."""
        while self.pending >= self.rules.max_pending:
            if not self._diagnosed:
                return False
            name, _ = self._diagnosed.popitem(last=False)
            self._expire(name, Reason.EVICTED)
        return True

    def _settlement(self, closed: _Closed) -> Settle:
        """Return what can be learned from an instance."""
        entry, codec = closed.entry, self.codec
        load = codec.load
        fields = entry.diagnosed_fields(codec) if isinstance(entry, Case) else codec.unpack(entry)
        # Spelled out because building a DiagnosedEntry first takes as long as unpacking.
        _, stamp, labels, payloads, late, context, complete, decision = fields
        return Settle(
            closed.name,
            closed.at,
            closed.label,
            tuple(labels),
            tuple([None if payload is None else load(payload) for payload in payloads]),
            tuple(late),
            context,
            complete,
            decision,
            stamp >> STAMP_BITS,
        )

    def _correction(self, changed: _Changed) -> Correct:
        """Return what is to be recounted."""
        closed = _Closed(changed.name, changed.at, changed.label, changed.of.entry)
        return Correct(self._settlement(closed), changed.was, changed.of.taught, changed.of.serial)

    # How much there is.

    @property
    def pending(self) -> int:
        """Return how many instances wait for a prediction, a diagnosis or a label."""
        return len(self._parked) + len(self._open) + len(self._diagnosed)

    @property
    def waiting(self) -> int:
        """Return, within a batch, how many earlier decisions nothing has been learned from yet.

        What expires in this batch is still counted: it may be one of its own decisions.
        """
        left = len(self._diagnosed) + len(self._closed) + len(self._step.expiries)
        return left - len(self._undecided)

    def sizes(self) -> dict[str, int]:
        """Return how many instances are in each state; `amendable` are a part of those `over`."""
        return {
            "parked": len(self._parked),
            "open": len(self._open),
            "diagnosed": len(self._diagnosed),
            "over": len(self._over),
            "amendable": len(self._amendable),
        }

    # Writing it down: between batches, and only what has changed since.

    def touched(self) -> list[str]:
        """Return the ids whose entries were made, changed or dropped since it was last asked."""
        if self._in_batch:
            raise LearnerError("ledger: settle the batch before it is written down")
        touched, self._touched = list(self._touched), {}
        return touched

    def dump(self, name: str) -> Packed | None:
        """Return the entry of one id, or None if there is none."""
        case = self._open.get(name) or self._parked.get(name)
        if case is not None:
            return self.codec.pack(case.open_entry())
        diagnosed = self._diagnosed.get(name)
        return self._over.get(name) if diagnosed is None else diagnosed

    def dump_head(self) -> dict[str, Any]:
        """Return what belongs to no id, as plain data; every batch may change it."""
        return {
            "clock": self.clock,
            "stamp": self._last_stamp,
            "opened": self._last_opened,
            "parked": self._last_parked,
            "settled_at": self._settled_at,
            "come": list(self._newest),
            "counts": dict(self.counts),
        }

    def restore(self, head: Mapping[str, Any], entries: Iterable[tuple[str, Packed]]) -> None:
        """Fill a new ledger with what was written down; the order of `entries` does not matter."""
        if self._last_stamp:
            raise LearnerError("ledger: only a new ledger can be restored")
        waiting = [(self._checked(packed).stamp, name, packed) for name, packed in entries]
        self.clock, self._last_stamp = head["clock"], head["stamp"]
        self._last_opened, self._last_parked = head["opened"], head["parked"]
        self._settled_at = head["settled_at"]
        self._newest = list(head["come"])
        self.counts.update(head["counts"])
        for _, name, packed in sorted(waiting, key=lambda entry: entry[0]):
            self._put_back(name, packed)

    def _checked(self, packed: Packed) -> Entry:
        """Return an entry that this ledger can go on with."""
        entry, learners = entry_of(self.codec.unpack(packed)), self.rules.learners
        waited = entry
        if isinstance(entry, SettledEntry):
            waited = entry_of(self.codec.unpack(entry.diagnosed))
        if isinstance(waited, OpenEntry | DiagnosedEntry) and len(waited.labels) != learners:
            raise LearnerError(
                f"ledger: an entry was written for {len(waited.labels)} local learners, "
                f"and the settings name {learners}"
            )
        return entry

    def _put_back(self, name: str, packed: Packed) -> None:
        entry = entry_of(self.codec.unpack(packed))
        if isinstance(entry, OpenEntry):
            case, load = Case.of(entry), self.codec.load
            case.payloads = [None if p is None else load(p) for p in case.payloads]
            (self._open if case.heard else self._parked)[name] = case
            self.early_bytes += self._early_size(case)
        elif isinstance(entry, DiagnosedEntry):
            self._diagnosed[name] = packed
        else:
            self._over[name] = packed
            if isinstance(entry, SettledEntry):
                self._amendable[name] = size = self.codec.size(entry.diagnosed)
                self.amendable_bytes += size


def _after(last: int, time: int) -> int:
    """Return the stamp of a moment that is larger than the last one."""
    stamp = time << STAMP_BITS
    return stamp if stamp > last else last + 1
