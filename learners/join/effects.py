"""What comes out of the ledger: things to do, in the order in which they became due."""

from dataclasses import dataclass, field
from typing import Any

from learners.join.events import Event, record
from learners.join.rules import Reason


@record
class Diagnose:
    """Fuse what the local learners said.

    labels    label index by learner, MISSING where none came
    payloads  what came with each prediction, None where none came
    context   the context's payload, None where none came
    missing   the learners that were not heard; `complete` is false if there are any, or if a
              contextual ensemble learner goes without its context
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
    late               the learners that were heard only after the diagnosis
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
class Expire:
    """Nothing will be learned from a diagnosed instance: no label came in time, or it gave way."""

    id: str
    at: int
    reason: Reason


@record
class Reject:
    """An event that cannot be used, and why. A parked event is rejected long after it came."""

    event: Event
    reason: Reason


@dataclass(slots=True)
class Step:
    """What one batch calls for, before the decisions are known."""

    diagnoses: list[Diagnose] = field(default_factory=list)
    expiries: list[Expire] = field(default_factory=list)
    rejections: list[Reject] = field(default_factory=list)
