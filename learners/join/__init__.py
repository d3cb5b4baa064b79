"""The join of predictions, contexts and late labels, as a pure state machine.

`ledger.py` is the machine, with its transitions as a table at the top; `events.py` says what goes
in, `effects.py` what comes out, `entries.py` what is kept between. `docs/join.md` explains it.

    >>> ledger = Ledger(JoinRules(learners=2, fusion_timeout=5_000, label_ttl=60_000))
    >>> step = ledger.apply([
    ...     Prediction(at=10, id="p1", learner=0, label=1, payload="from the first"),
    ...     Prediction(at=11, id="p1", learner=1, label=0, payload="from the second"),
    ...     Label(at=12, id="p1", label=1),
    ... ])
    >>> [(diagnosis.id, diagnosis.labels, diagnosis.complete) for diagnosis in step.diagnoses]
    [('p1', (1, 0), True)]
    >>> settled = ledger.settle(["one decision per diagnosis"])
    >>> [(case.id, case.label, case.decision) for case in settled]
    [('p1', 1, 'one decision per diagnosis')]
"""

from learners.join.effects import Correct, Diagnose, Expire, Reason, Reject, Settle, Step
from learners.join.entries import Codec
from learners.join.events import (
    Amendment,
    Context,
    Erase,
    Event,
    Label,
    Prediction,
    Withdrawal,
    label_event,
)
from learners.join.ledger import AMENDMENTS, COUNTERS, TAKEN, JoinRules, Ledger

__all__ = [
    "AMENDMENTS",
    "COUNTERS",
    "TAKEN",
    "Amendment",
    "Codec",
    "Context",
    "Correct",
    "Diagnose",
    "Erase",
    "Event",
    "Expire",
    "JoinRules",
    "Label",
    "Ledger",
    "Prediction",
    "Reason",
    "Reject",
    "Settle",
    "Step",
    "Withdrawal",
    "label_event",
]
