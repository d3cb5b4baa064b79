"""How instances move from state to state, and how the passing of time moves them.

Every queue holds waits of one length and time never goes back. So its oldest entry is always the
next to run out, and an event takes the same number of steps however many instances are pending.
"""

from collections import OrderedDict
from collections.abc import Sequence

from learners.arrays.types import MISSING
from learners.join.book import Book
from learners.join.effects import Diagnose, Expire, Reject, Step
from learners.join.entries import EVICTED, EXPIRED, STAMP_BITS, Case, Codec, Packed
from learners.join.events import Context, Event, Label
from learners.join.rules import JoinRules, Reason


class Transitions(Book):
    """The moves of the ledger, each with its effect and its count."""

    def __init__(self, rules: JoinRules, codec: Codec | None = None) -> None:
        super().__init__(rules, codec)
        self._due = 0
        self._step = Step()
        self._undecided: list[tuple[str, Case]] = []
        self._settling: list[tuple[str, int, int, Case | Packed]] = []

    # Time

    def _tick(self, now: int) -> None:
        """Move the clock to `now`; end on the way, in order of time, every wait that runs out.

        `_due` is a lower bound of all deadlines, those of entries yet to come included, so that
        most ticks are one comparison.
        """
        while self._due <= now:
            self._due = self._next_deadline(now)
            if self._due <= now:
                # Rules that became stricter between two runs may leave deadlines in the past.
                self.clock = max(self.clock, self._due)
                self._end_waits()
        self.clock = now

    def _move(self, at: int, live: int, awaited: Sequence[int]) -> None:
        """Let a prediction of time `at` move the clock."""
        if at < live:
            at = min((self._come[learner] for learner in awaited), default=at)
        if at > self.clock:
            self._tick(at)

    def due(self, now: int) -> bool:
        """Tell whether a wait has run out at `now`, so that moving the clock there changes more."""
        return now > self.clock and self._due <= now and self._next_deadline(now) <= now

    def _next_deadline(self, now: int) -> int:
        """Return the earliest deadline there is, or can be of what comes from `now` on."""
        fusion, ttl = self.rules.fusion_timeout, self.rules.label_ttl
        due = now + min(fusion, ttl)
        if self._open:
            due = min(due, self._oldest(self._open) + fusion)
        if self._diagnosed:
            due = min(due, self._oldest(self._diagnosed) + ttl)
        if self._parked:
            due = min(due, self._oldest(self._parked) + ttl)
        return due

    def _end_waits(self) -> None:
        """End the waits whose deadline has come."""
        since = self.clock - self.rules.fusion_timeout
        while self._open and self._oldest(self._open) <= since:
            self._diagnose(*self._open.popitem(last=False))
        since = self.clock - self.rules.label_ttl
        while self._diagnosed and self._oldest(self._diagnosed) <= since:
            self._expire(Reason.EXPIRED)
        while self._parked and self._oldest(self._parked) <= since:
            self._give_up(*self._parked.popitem(last=False))

    def _oldest(self, queue: OrderedDict[str, Case] | OrderedDict[str, Case | Packed]) -> int:
        """Return when the oldest entry of a queue began to wait."""
        return self._began(next(iter(queue.values())))

    def _began(self, entry: Case | Packed) -> int:
        """Return when an entry began to wait."""
        stamp = entry.stamp if isinstance(entry, Case) else self._stamp_of(entry)
        return stamp >> STAMP_BITS

    # Moves

    def _diagnose(self, name: str, case: Case) -> None:
        """Call for a diagnosis with what is there; a label that is there already settles it."""
        missing, context = case.missing(), case.context
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
            self._close(name, case.label, case)

    def _close(self, name: str, label: int, found: Case | Packed, at: int = 0) -> None:
        """Settle a diagnosed instance; the effect waits for the batch's decisions.

        Settlements have times in their order; those of a backlog are the times of their labels.
        """
        self._settled_at = max(self._settled_at, self.clock, at)
        self.counts["settled"] += 1
        self._settling.append((name, self._settled_at, label, found))
        self._remember(name, label)

    def _expire(self, reason: Reason) -> None:
        """Give up the oldest diagnosis."""
        name, _ = self._diagnosed.popitem(last=False)
        self._drop(name, reason)

    def _expire_before(self, event: Label) -> None:
        """Give up a diagnosis whose label comes too late, though the clock is not there yet."""
        found = self._diagnosed.get(event.id)
        if found is not None and self._began(found) + self.rules.label_ttl <= event.at:
            del self._diagnosed[event.id]
            self._drop(event.id, Reason.EXPIRED)

    def _drop(self, name: str, reason: Reason) -> None:
        self.counts[reason] += 1
        self._step.expiries.append(Expire(name, self.clock, reason))
        self._remember(name, EXPIRED if reason is Reason.EXPIRED else EVICTED)

    def _give_up(self, name: str, case: Case) -> None:
        """Reject what was parked for an instance of which no prediction came."""
        self._touched[name] = None
        at = case.stamp >> STAMP_BITS
        if case.context is not None:
            self.counts["parked_context_unknown"] += 1
            self._reject(Context(at, name, case.context), Reason.UNKNOWN)
        if case.label != MISSING:
            self.counts["parked_label_unknown"] += 1
            self._reject(Label(at, name, case.label, case.label_payload), Reason.UNKNOWN)

    def _park(self, event: Context | Label) -> Case | None:
        """Make an entry for an instance without predictions; None if there is no room."""
        if not self._make_room():
            self._reject(event, Reason.PENDING_FULL)
            return None
        case = self._parked[event.id] = Case(self._stamp_parked(event.at), self.rules.learners)
        return case

    # Bounds

    def _make_room(self) -> bool:
        """Let the oldest diagnoses give way at `max_pending`: only learning is lost with them."""
        while self.pending >= self.rules.max_pending:
            if not self._diagnosed:
                return False
            self._expire(Reason.EVICTED)
        return True

    def _remember(self, name: str, outcome: int) -> None:
        self._touched[name] = None
        self._over[name] = self.codec.pack(("over", self._stamp(), outcome))
        while len(self._over) > self.rules.max_remembered:
            self._touched[self._over.popitem(last=False)[0]] = None
            self.counts["forgotten"] += 1

    def _reject(self, event: Event, reason: Reason) -> None:
        self._step.rejections.append(Reject(event, reason))
