"""The rules of the join: what each event does to an instance in each state.

A batch takes two calls. `apply` takes the events and returns what they call for; the caller fuses
all diagnoses of the batch at once, and `settle` takes those decisions and returns what can be
learned. So a label that came before its decision, parked or in the same batch, is no special case.

Nothing here is undone. A caller whose batch fails drops the ledger and restores one from what it
wrote after the last batch that succeeded, as after a crash.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.join.effects import Settle, Step
from learners.join.entries import EVICTED, EXPIRED, STAMP_BITS, Case, Packed, case_of
from learners.join.events import Context, Event, Label, Prediction
from learners.join.rules import Reason
from learners.join.transitions import Transitions


class Ledger(Transitions):
    """Joins predictions, contexts and labels by instance id under `rules`."""

    # One batch

    def apply(
        self, events: Iterable[Event], now: int = 0, *, live: int = 0, awaited: Sequence[int] = ()
    ) -> Step:
        """Take a batch of events, then move the clock to `now` if it is behind.

        An event moves the clock to its time. But one from before `live` is read from a backlog,
        where one learner may be far ahead of another: then the clock is how far all the `awaited`
        learners have come. An event older than the clock counts as happening now. `settle` must
        follow.
        """
        if self._in_batch:
            raise LearnerError("ledger: settle the last batch before the next")
        self._in_batch, self._step = True, Step()
        for event in events:
            if isinstance(event, Prediction):
                self._come[event.learner] = max(self._come[event.learner], event.at)
                if event.at > self.clock:
                    self._move(event.at, live, awaited)
                self._predict(event)
                continue
            if event.at > self.clock and event.at >= live:
                self._tick(event.at)
            if isinstance(event, Label):
                self._label(event)
            else:
                self._place(event)
        if now > self.clock:
            self._tick(now)
        return self._step

    def advance(self, now: int) -> Step:
        """Move the clock only. `settle` must follow."""
        return self.apply((), now)

    def settle(self, decisions: Sequence[Any]) -> list[Settle]:
        """Take one decision per diagnosis of the batch, and return what its labels settle."""
        if not self._in_batch or len(decisions) != len(self._undecided):
            raise LearnerError("ledger: settle takes one decision per diagnosis of the last batch")
        codec = self.codec
        for (name, case), decision in zip(self._undecided, decisions, strict=True):
            case.decision = decision
            if self._diagnosed.get(name) is case:
                self._diagnosed[name] = codec.pack(case.plain_diagnosed(codec.keep))
        settled = [self._settlement(*each) for each in self._settling]
        self._in_batch, self._undecided, self._settling = False, [], []
        return settled

    # Predictions

    def _predict(self, event: Prediction) -> None:
        case = self._open.get(event.id) or self._open_for(event)
        if case is None:
            return
        if case.labels[event.learner] != MISSING:
            self._count_repeat(event, case)
            return
        self.counts["prediction_taken"] += 1
        self._touched[event.id] = None
        case.labels[event.learner] = event.label
        case.payloads[event.learner] = event.payload
        case.heard += 1
        if case.heard == self.rules.learners:
            self._diagnose_if_complete(event.id, case)

    def _open_for(self, event: Prediction) -> Case | None:
        """Return the case that the first prediction of an instance opens, if it does."""
        name = event.id
        if name in self._diagnosed:
            self._predict_late(event)
            return None
        over = self._over.get(name)
        if over is not None:
            settled = self._outcome(over) >= 0
            self.counts["prediction_settled" if settled else "prediction_expired"] += 1
            return None
        case = self._parked.pop(name, None)
        if case is not None:
            case.stamp = self._stamp_open(event.at)
        elif self._make_room():
            case = Case(self._stamp_open(event.at), self.rules.learners)
        else:
            self.counts["prediction_pending_full"] += 1
            self._reject(event, Reason.PENDING_FULL)
            return None
        self._open[name] = case
        return case

    def _predict_late(self, event: Prediction) -> None:
        """Keep a prediction that missed the diagnosis: its learner still takes the loss."""
        found = self._diagnosed[event.id]
        case = found if isinstance(found, Case) else case_of(self.codec.unpack(found))
        if case.labels[event.learner] != MISSING:
            self._count_repeat(event, case)
            return
        self.counts["prediction_late"] += 1
        self._touched[event.id] = None
        case.labels[event.learner] = event.label
        case.payloads[event.learner] = event.payload
        case.late = (*case.late, event.learner)
        if case is not found:
            self._diagnosed[event.id] = self.codec.pack(case.plain_diagnosed(self.codec.keep))

    def _count_repeat(self, event: Prediction, case: Case) -> None:
        same = case.labels[event.learner] == event.label and self.codec.same(
            case.payloads[event.learner], event.payload
        )
        self.counts["prediction_duplicate" if same else "prediction_conflict"] += 1

    def _diagnose_if_complete(self, name: str, case: Case) -> None:
        rules = self.rules
        if case.heard == rules.learners and (case.context is not None or not rules.contextual):
            del self._open[name]
            self._diagnose(name, case)

    # Contexts

    def _place(self, event: Context) -> None:
        name = event.id
        if name in self._diagnosed or name in self._over:
            self.counts["context_late"] += 1
            return
        case = self._open.get(name) or self._parked.get(name) or self._park(event)
        if case is None:
            self.counts["context_pending_full"] += 1
        elif case.context is not None:
            same = case.context == event.payload
            self.counts["context_duplicate" if same else "context_conflict"] += 1
        else:
            self.counts["context_taken"] += 1
            case.context = event.payload
            self._keep(event, case)
            self._diagnose_if_complete(name, case)

    # Labels

    def _label(self, event: Label) -> None:
        if event.at > self.clock:
            self._expire_before(event)
        found = self._diagnosed.pop(event.id, None)
        if found is None:
            self._label_undiagnosed(event)
        else:
            self.counts["label_matched"] += 1
            self._close(event.id, event.label, found, event.at)

    def _label_undiagnosed(self, event: Label) -> None:
        """Take a label for an instance that is over, or park one that is early."""
        name = event.id
        over = self._over.get(name)
        if over is not None:
            self._label_again(event, self._outcome(over))
            return
        case = self._open.get(name) or self._parked.get(name) or self._park(event)
        if case is None:
            self.counts["label_pending_full"] += 1
        elif case.label != MISSING:
            self._label_again(event, case.label)
        else:
            self.counts["label_parked"] += 1
            case.label, case.label_payload = event.label, event.payload
            self._keep(event, case)

    def _label_again(self, event: Label, first: int) -> None:
        """Take a label for an instance that has one, or that got none in time."""
        if event.label == first:
            self.counts["label_duplicate"] += 1
            return
        reason = _REASONS.get(first, Reason.CONFLICT)
        self.counts[f"label_{reason}"] += 1
        self._reject(event, reason)

    def _keep(self, event: Context | Label, case: Case) -> None:
        """Keep what an early event brought; a case without predictions begins its wait anew."""
        self._touched[event.id] = None
        if not case.heard:
            case.stamp = self._stamp_parked(event.at)
            self._parked.move_to_end(event.id)

    def _outcome(self, over: Packed) -> int:
        """Return the label of an instance that is over, or EXPIRED or EVICTED."""
        _, _, outcome = self.codec.unpack(over)
        return int(outcome)

    def _settlement(self, name: str, at: int, label: int, found: Case | Packed) -> Settle:
        codec = self.codec
        if isinstance(found, Case):
            kept: Sequence[Any] = found.plain_diagnosed(codec.keep)
        else:
            kept = codec.unpack(found)
        _, stamp, labels, payloads, late, context, complete, decision = kept
        return Settle(
            name,
            at,
            label,
            tuple(labels),
            tuple(payloads),
            tuple(late),
            context,
            complete,
            decision,
            stamp >> STAMP_BITS,
        )


_REASONS = {EXPIRED: Reason.EXPIRED, EVICTED: Reason.EVICTED}
