"""The join of predictions, late labels and corrections, slow and obvious: compare the ledger.

All instances are rows of one list, and every question walks the list. Time moves one millisecond at
a time. Nothing is packed and there are no queues.
"""

from collections import Counter

from learners.join import (
    Amendment,
    Context,
    Correct,
    Diagnose,
    Expire,
    Label,
    Prediction,
    Reason,
    Reject,
    Settle,
    Withdrawal,
)

WITHDRAWN = "withdrawn"


class Row:
    def __init__(self, name):
        self.name = name
        self.state = None  # parked, open, diagnosed or over
        self.since = self.order = 0
        self.votes, self.late = {}, []
        self.context = self.label = self.parked_label = self.decision = None
        self.complete = False
        self.outcome = None  # of an instance that is over: its label, a reason, or WITHDRAWN
        self.amendable = False
        self.settled_at = self.serial = self.taught = None


class SlowLedger:
    def __init__(self, rules):
        self.rules, self.clock, self.moves = rules, 0, 0
        self.rows, self.counts = [], Counter()

    def apply(self, events, now=0):
        self.diagnoses, self.expiries, self.rejections = [], [], []
        self.undecided, self.settling, self.correcting = [], [], []
        for event in events:
            self.pass_time(event.at)
            takers = {
                Prediction: self.predict,
                Context: self.place,
                Label: self.label,
                Amendment: self.amend,
                Withdrawal: self.withdraw,
            }
            takers[type(event)](event)
        self.pass_time(now)
        return self.diagnoses, self.expiries, self.rejections

    def settle(self, decisions):
        for row, decision in zip(self.undecided, decisions, strict=True):
            row.decision = decision
        self.corrections = [
            Correct(self.settlement(row, at, label), was, row.taught, row.serial)
            for row, at, label, was in self.correcting
        ]
        return [self.settlement(row, at, label) for row, at, label in self.settling]

    def settlement(self, row, at, label):
        return Settle(
            id=row.name,
            at=at,
            label=label,
            labels=self.labels(row),
            payloads=self.payloads(row),
            late=tuple(row.late),
            context=row.context,
            complete=row.complete,
            decision=row.decision,
            diagnosed_at=row.diagnosed_at,
        )

    # Looking

    def find(self, name):
        return next((row for row in self.rows if row.name == name), None)

    def among(self, state):
        if state == "amendable":
            return [row for row in self.among("over") if row.amendable]
        rows = [row for row in self.rows if row.state == state]
        return sorted(rows, key=lambda row: row.order)

    def pending(self):
        return len(self.rows) - len(self.among("over"))

    def labels(self, row):
        return tuple(row.votes.get(i, (-1, None))[0] for i in range(self.rules.learners))

    def payloads(self, row):
        return tuple(row.votes.get(i, (-1, None))[1] for i in range(self.rules.learners))

    # Time

    def pass_time(self, now):
        while self.clock < now:
            self.clock += 1
            for row in self.among("open"):
                if row.since + self.rules.fusion_timeout <= self.clock:
                    self.diagnose(row)
            for row in self.among("diagnosed"):
                if row.since + self.rules.label_ttl <= self.clock:
                    self.expire(row, Reason.EXPIRED)
            for row in self.among("parked"):
                if row.since + self.rules.label_ttl <= self.clock:
                    self.give_up(row)
            for row in self.among("amendable"):
                if row.settled_at + self.rules.amend_ttl <= self.clock:
                    row.amendable = False

    # Moving

    def move(self, row, state):
        self.moves += 1
        row.state, row.since, row.order = state, self.clock, self.moves

    def enter(self, event, state):
        while self.pending() >= self.rules.max_pending:
            if not self.among("diagnosed"):
                self.rejections.append(Reject(event, Reason.PENDING_FULL))
                return None
            self.expire(self.among("diagnosed")[0], Reason.EVICTED)
        row = Row(event.id)
        self.rows.append(row)
        self.move(row, state)
        return row

    def diagnose_when_complete(self, row):
        if len(row.votes) == self.rules.learners and (row.context or not self.rules.contextual):
            self.diagnose(row)

    def diagnose(self, row):
        missing = tuple(i for i in range(self.rules.learners) if i not in row.votes)
        row.complete = not missing and bool(row.context or not self.rules.contextual)
        votes = self.labels(row), self.payloads(row)
        self.diagnoses.append(
            Diagnose(row.name, self.clock, *votes, row.context, row.complete, missing)
        )
        self.undecided.append(row)
        self.counts["diagnosed_complete" if row.complete else "diagnosed_incomplete"] += 1
        self.move(row, "diagnosed")
        row.diagnosed_at = self.clock
        if row.parked_label:
            self.counts["parked_label_settled"] += 1
            self.close(row, row.parked_label.label)

    def close(self, row, label):
        row.serial, row.taught, row.settled_at = self.counts["settled"], label, self.clock
        row.amendable = bool(self.rules.amend_ttl and self.rules.max_amendable)
        self.counts["settled"] += 1
        self.settling.append((row, self.clock, label))
        self.end(row, label)
        while len(self.among("amendable")) > self.rules.max_amendable:
            self.among("amendable")[0].amendable = False
            self.counts["amend_given_up"] += 1

    def expire(self, row, reason):
        self.counts[str(reason)] += 1
        self.expiries.append(Expire(row.name, self.clock, reason))
        self.end(row, reason)

    def end(self, row, outcome):
        row.outcome = outcome
        self.move(row, "over")
        while len(self.among("over")) > self.rules.max_remembered:
            self.rows.remove(self.among("over")[0])
            self.counts["forgotten"] += 1

    def give_up(self, row):
        self.rows.remove(row)
        if row.context:
            self.counts["parked_context_unknown"] += 1
            event = Context(row.since, row.name, row.context)
            self.rejections.append(Reject(event, Reason.UNKNOWN))
        if row.parked_label:
            self.counts["parked_label_unknown"] += 1
            label = row.parked_label
            event = Label(row.since, row.name, label.label, label.payload)
            self.rejections.append(Reject(event, Reason.UNKNOWN))

    # Events

    def predict(self, event):
        row = self.find(event.id)
        if row and row.state == "over":
            expired = isinstance(row.outcome, Reason)
            self.counts["prediction_expired" if expired else "prediction_settled"] += 1
            return
        row = row or self.enter(event, "open")
        if not row:
            self.counts["prediction_pending_full"] += 1
        elif event.learner in row.votes:
            same = row.votes[event.learner] == (event.label, event.payload)
            self.counts["prediction_duplicate" if same else "prediction_conflict"] += 1
        elif row.state == "diagnosed":
            self.counts["prediction_late"] += 1
            row.votes[event.learner] = event.label, event.payload
            row.late.append(event.learner)
        else:
            self.counts["prediction_taken"] += 1
            row.votes[event.learner] = event.label, event.payload
            if row.state == "parked":
                self.move(row, "open")
            self.diagnose_when_complete(row)

    def place(self, event):
        row = self.find(event.id)
        if row and row.state in {"diagnosed", "over"}:
            self.counts["context_late"] += 1
            return
        row = row or self.enter(event, "parked")
        if not row:
            self.counts["context_pending_full"] += 1
        elif row.context:
            same = row.context == event.payload
            self.counts["context_duplicate" if same else "context_conflict"] += 1
        else:
            self.counts["context_taken"] += 1
            row.context = event.payload
            self.wait_again(row)
            self.diagnose_when_complete(row)

    def label(self, event):
        row = self.find(event.id) or self.enter(event, "parked")
        if not row:
            self.counts["label_pending_full"] += 1
        elif row.state == "over" and row.outcome == WITHDRAWN:
            if row.amendable:
                self.counts["label_again"] += 1
                self.change(row, event.label)
            else:
                self.counts["label_final"] += 1
                self.rejections.append(Reject(event, Reason.FINAL))
        elif row.state == "over":
            self.label_again(event, row.outcome)
        elif row.state == "diagnosed":
            self.counts["label_matched"] += 1
            self.close(row, event.label)
        elif row.parked_label:
            self.label_again(event, row.parked_label.label)
        else:
            self.counts["label_parked"] += 1
            row.parked_label = event
            self.wait_again(row)

    def label_again(self, event, first):
        if event.label == first:
            self.counts["label_duplicate"] += 1
        else:
            reason = first if isinstance(first, Reason) else Reason.CONFLICT
            self.counts[f"label_{reason}"] += 1
            self.rejections.append(Reject(event, reason))

    def amend(self, event):
        row = self.find(event.id) or self.enter(event, "parked")
        if not row:
            self.counts["amendment_pending_full"] += 1
        elif row.state == "over":
            self.amend_over(event, row)
        elif row.state == "diagnosed":
            self.counts["amendment_matched"] += 1
            self.close(row, event.label)
        elif row.parked_label and row.parked_label.label == event.label:
            self.counts["amendment_duplicate"] += 1
        else:
            self.counts["amendment_replaced" if row.parked_label else "amendment_parked"] += 1
            row.parked_label = event
            self.wait_again(row)

    def amend_over(self, event, row):
        if isinstance(row.outcome, Reason):
            self.counts[f"amendment_{row.outcome}"] += 1
            self.rejections.append(Reject(event, row.outcome))
        elif event.label == row.outcome:
            self.counts["amendment_duplicate"] += 1
        elif row.amendable:
            self.counts["amendment_taken"] += 1
            self.change(row, event.label)
        else:
            self.counts["amendment_final"] += 1
            self.rejections.append(Reject(event, Reason.FINAL))

    def withdraw(self, event):
        row = self.find(event.id)
        if row and row.parked_label and row.state in {"parked", "open"}:
            self.counts["withdrawal_parked"] += 1
            row.parked_label = None
            if row.state == "parked" and not row.context:
                self.rows.remove(row)
        elif not row or row.state != "over" or isinstance(row.outcome, str):
            self.counts["withdrawal_unmatched"] += 1
        elif row.amendable:
            self.counts["withdrawal_taken"] += 1
            self.change(row, WITHDRAWN)
        else:
            self.counts["withdrawal_final"] += 1
            self.rejections.append(Reject(event, Reason.FINAL))

    def change(self, row, outcome):
        was, row.outcome = row.outcome, outcome
        self.counts["unlearned"] += (outcome != row.taught) - (was != row.taught)
        now, was = (-1 if label == WITHDRAWN else label for label in (outcome, was))
        self.correcting.append((row, self.clock, now, was))

    def wait_again(self, row):
        if row.state == "parked":
            self.move(row, "parked")
