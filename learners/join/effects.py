"""What comes out of the ledger: things to do, in the order in which they became due."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from learners.join.events import Event, record


class Reason(StrEnum):
    """Why an event was rejected or a diagnosis expired."""

    CONFLICT = "conflict"
    """The instance already has a different label."""
    UNKNOWN = "unknown"
    """No prediction came for the instance while its label or context was parked."""
    EXPIRED = "expired"
    """No label came within `label_ttl` of the diagnosis."""
    EVICTED = "evicted"
    """The diagnosis gave way to newer instances at `max_pending`."""
    PENDING_FULL = "pending_full"
    """The instance is new, `max_pending` others are waiting, and none of them can give way."""
    FINAL = "final"
    """Its label can no longer be changed: what a correction needs is no longer kept."""


@record
class Diagnose:
    """Fuse what the local learners predicted.

    labels    label index by learner, MISSING where none came
    payloads  what came with each prediction, None where none came
    context   the context's payload, None where none came
    missing   the learners whose prediction did not come; `complete` is false if there are any, or
              if a contextual ensemble learner goes without its context
    """

    id: str
    at: int
    labels: tuple[int, ...]
    payloads: tuple[Any, ...]
    context: Any
    complete: bool
    missing: tuple[int, ...]


@record
class Settle:
    """Learn: the label of a diagnosed instance is known.

    labels, payloads   as in Diagnose, with the predictions that came after it
    late               the learners whose prediction came only after the diagnosis
    decision           what the caller handed back for the diagnosis
    diagnosed_at       when it was made, so that `at - diagnosed_at` is the label's delay
    """

    id: str
    at: int
    label: int
    labels: tuple[int, ...]
    payloads: tuple[Any, ...]
    late: tuple[int, ...]
    context: Any
    complete: bool
    decision: Any
    diagnosed_at: int


@record
class Correct:
    """Recount: the label of a settled instance has changed.

    case     the settlement as it is now; its label is MISSING if it was withdrawn
    was      the label that counted so far, MISSING if it had been withdrawn
    taught   the label that was learned when the instance was settled
    serial   its number among all settlements
    """

    case: Settle
    was: int
    taught: int
    serial: int


@record
class Expire:
    """Nothing will be learned from a diagnosed instance: it expired or was evicted."""

    id: str
    at: int
    reason: Reason


@record
class Reject:
    """An event that cannot be used, and why. A parked event may be rejected long after it came."""

    event: Event
    reason: Reason


@dataclass(slots=True)
class Step:
    """What one batch calls for, before the decisions are known; `settle` adds the corrections."""

    diagnoses: list[Diagnose] = field(default_factory=list)
    expiries: list[Expire] = field(default_factory=list)
    rejections: list[Reject] = field(default_factory=list)
    corrections: list[Correct] = field(default_factory=list)
