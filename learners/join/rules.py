"""The settings of the join, the reasons it gives, and the names of what it counts."""

from dataclasses import dataclass
from enum import StrEnum

from learners.errors import LearnerError


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
    """

    learners: int
    fusion_timeout: int
    label_ttl: int
    contextual: bool = False
    max_pending: int = 1_000_000
    max_remembered: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("learners", "fusion_timeout", "label_ttl", "max_pending"):
            if getattr(self, name) < 1:
                raise LearnerError(f"join: {name} must be at least 1")
        if self.max_remembered < 0:
            raise LearnerError("join: max_remembered must be 0 or greater")


class Reason(StrEnum):
    """Why an event was rejected or a diagnosis expired."""

    CONFLICT = "conflict"
    """The instance has another label already."""
    UNKNOWN = "unknown"
    """No prediction came for the instance while its label or context was parked."""
    EXPIRED = "expired"
    """No label came within `label_ttl` of the diagnosis."""
    EVICTED = "evicted"
    """The diagnosis gave way to newer instances at `max_pending`."""
    PENDING_FULL = "pending_full"
    """A new instance found `max_pending` others, none of which could give way."""


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
"""What the ledger counts; `docs/join.md` says when."""
