"""What the join carries with predictions, contexts and diagnoses, and hands back with the label.

The ledger takes payloads as they are and may return them as lists, as its codec unpacks them. The
order of the fields is the stored order: entries hold the values alone.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple


class PredictionPayload(NamedTuple):
    """What comes with the label of a local learner.

    exploring, accuracy, log_odds   what fusion hears of it
    rule, phase, cube, votes        what feedback hands back, named or numbered as the caller likes
    trials, low, high, epsilon,
    missing, subject, history,
    trace                           what a diagnosis shows; not kept after it
    """

    exploring: bool = False
    accuracy: float | None = None
    log_odds: Sequence[float] | None = None
    rule: str | int = 0
    phase: int = 0
    cube: str | int = 0
    votes: Mapping[str, str] | Sequence[int] | None = None
    trials: int = 0
    low: float | None = None
    high: float | None = None
    epsilon: float | None = None
    missing: int = 0
    subject: str | None = None
    history: bool = False
    trace: bytes | None = None


NOTHING_HEARD = PredictionPayload()
"""Stands in for a prediction that did not come."""

keep_payload = itemgetter(slice(PredictionPayload._fields.index("trials")))
"""Return what of a prediction's payload is needed after the diagnosis."""


_UNKEPT = tuple(NOTHING_HEARD[i:] for i in range(1 + len(NOTHING_HEARD)))


def load_payload(fields: Sequence[Any]) -> PredictionPayload:
    """Return a payload from its values, all of them or those that were kept."""
    # This runs three times for every label; the class's own constructor takes half as long again.
    return tuple.__new__(PredictionPayload, (*fields, *_UNKEPT[len(fields)]))


class LabelPayload(NamedTuple):
    """What comes with a label: its record (or a digest) for the dead letters."""

    offset: int = -1
    value: Any = None


class ContextPayload(NamedTuple):
    """What comes with a context: its cube, and its record (or a digest) for the dead letters."""

    cube: int
    offset: int = -1
    value: Any = None


keep_context = itemgetter(slice(ContextPayload._fields.index("offset")))
"""Return what of a context's payload is needed after the diagnosis."""


class Decision(NamedTuple):
    """What was decided on an instance, kept until its label comes.

    cell    the cube of its context
    label   the label of the diagnosis
    parts   each expert's share, in whole parts
    votes   each expert's label
    basis   what the fusion rule had learned by then (`FusedPredictions.basis`)
    sure    what `learners.assessment` learns from (`Assessed.kept`); empty if it was not kept
    history whether the patient is one of the past, whose errors are counted apart
    """

    cell: int
    label: int
    parts: Sequence[int]
    votes: Sequence[int]
    basis: Sequence[int] = ()
    sure: bytes = b""
    history: bool = False


class Decisions(NamedTuple):
    """Many decisions: the columns of `Decision`."""

    cell: Sequence[int]
    label: Sequence[int]
    parts: Sequence[Sequence[int]]
    votes: Sequence[Sequence[int]]
    basis: Sequence[Sequence[int]]
    sure: Sequence[bytes]
    history: Sequence[bool]

    @classmethod
    def of(cls, decisions: Sequence[Sequence[Any]]) -> "Decisions":
        """Return what was kept of decisions, at least one, by columns."""
        if min(map(len, decisions)) < len(cls._fields):  # earlier versions kept less
            decisions = [Decision(*fields) for fields in decisions]
        return cls(*zip(*decisions, strict=True))
