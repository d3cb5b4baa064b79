"""The join of predictions and late labels, slow and obvious, to compare the ledger with.

All instances are rows of one list, and every question walks the list. Time moves one millisecond at
a time. Nothing is packed and there are no queues.
"""

from collections import Counter

from learners.join import Context, Diagnose, Expire, Label, Prediction, Reason, Reject, Settle


class Row:
    def __init__(self, name):
        self.name = name
        self.state = None  # parked, open, diagnosed or over
        self.since = self.order = 0
        self.votes, self.late = {}, []
        self.context = self.label = self.parked_label = self.decision = None
        self.complete = False
        self.outcome = None  # of an instance that is over: its label, or a reason


class SlowLedger:
    def __init__(self, rules):
        self.rules, self.clock, self.moves = rules, 0, 0
        self.rows, self.counts = [], Counter()

    def apply(self, events, now=0):
        self.diagnoses, self.expiries, self.rejections = [], [], []
        self.undecided, self.settling = [], []
        for event in events:
            self.pass_time(event.at)
            takers = {Prediction: self.predict, Context: self.place, Label: self.label}
            takers[type(event)](event)
        self.pass_time(now)
        return self.diagnoses, self.expiries, self.rejections

    def settle(self, decisions):
        for row, decision in zip(self.undecided, decisions, strict=True):
            row.decision = decision
        return [
            Settle(
                id=row.name,
                at=at,
                label=label,
                labels=self.labels(row),
                payloads=self.payloads(row),
                late=tuple(row.late),
                context=row.context,
                complete=row.complete,
                decision=row.decision,
                diagnosed_at=since,
            )
            for row, at, label, since in self.settling
        ]

    # Looking

    def find(self, name):
        return next((row for row in self.rows if row.name == name), None)

    def among(self, state):
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
        if row.parked_label:
            self.counts["parked_label_settled"] += 1
            self.close(row, row.parked_label.label)

    def close(self, row, label):
        self.counts["settled"] += 1
        self.settling.append((row, self.clock, label, row.since))
        self.end(row, label)

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
            self.wait_anew(row)
            self.diagnose_when_complete(row)

    def label(self, event):
        row = self.find(event.id) or self.enter(event, "parked")
        if not row:
            self.counts["label_pending_full"] += 1
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
            self.wait_anew(row)

    def label_again(self, event, first):
        if event.label == first:
            self.counts["label_duplicate"] += 1
        else:
            reason = first if isinstance(first, Reason) else Reason.CONFLICT
            self.counts[f"label_{reason}"] += 1
            self.rejections.append(Reject(event, reason))

    def wait_anew(self, row):
        if row.state == "parked":
            self.move(row, "parked")
