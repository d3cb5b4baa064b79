"""The join of predictions, contexts and late labels, as a pure state machine.

`events.py` says what goes in, `effects.py` what comes out, `entries.py` what is kept between, and
`machine.py` holds the rules; `docs/join.md` has them as a table.

    >>> ledger = Ledger(JoinRules(learners=2, fusion_timeout=5_000, label_ttl=60_000))
    >>> step = ledger.apply([
    ...     Prediction(at=10, id="p1", learner=0, label=1, payload="from the first"),
    ...     Prediction(at=11, id="p1", learner=1, label=0, payload="from the second"),
    ...     Label(at=12, id="p1", label=1),
    ... ])
    >>> [(each.id, each.labels, each.complete) for each in step.diagnoses]
    [('p1', (1, 0), True)]
    >>> [(each.id, each.label, each.decision) for each in ledger.settle(["one decision each"])]
    [('p1', 1, 'one decision each')]
"""

from learners.join.effects import Diagnose, Expire, Reject, Settle, Step
from learners.join.entries import Codec
from learners.join.events import Context, Event, Label, Prediction
from learners.join.machine import Ledger
from learners.join.rules import COUNTERS, JoinRules, Reason

__all__ = [
    "COUNTERS",
    "Codec",
    "Context",
    "Diagnose",
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
]
