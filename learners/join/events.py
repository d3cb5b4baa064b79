"""What goes into the ledger: predictions, contexts, labels and their corrections.

Each comes at a moment of stream time.

`at` is in milliseconds. Payloads are opaque: the ledger keeps them, compares them as its codec
packs them to tell a repeat from a contradiction, and hands back what it keeps of them. They must be
plain data that is never changed afterwards. Learners and labels are indices from 0 that the caller
has checked.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, dataclass_transform

from learners.arrays.types import MISSING

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def record(cls: type[_T]) -> type[_T]:
    """Make a slotted dataclass that the type checker treats as frozen.

    Freezing it at run time as well makes construction four times slower, and these are constructed
    for every record of the stream.
    """
    return dataclass(slots=True)(cls)


@record
class Prediction:
    """Local learner number `learner` predicted `label` (an index) for the instance.

    `reference` is the caller's, for a prediction that is rejected: the ledger never keeps it.
    """

    at: int
    id: str
    learner: int
    label: int
    payload: Any = None
    reference: Any = None


@record
class Context:
    """The context of the instance, for a contextual ensemble learner; its payload is never None."""

    at: int
    id: str
    payload: Any


@record
class Label:
    """The true label of the instance; the payload comes back if the label has to be rejected."""

    at: int
    id: str
    label: int
    payload: Any = None


@record
class Erase:
    """The patient is to be erased: all that is kept goes, and later events have no effect."""

    at: int
    id: str


@record
class Amendment:
    """The true label of the instance, whatever label it had before; otherwise like a label."""

    at: int
    id: str
    label: int
    payload: Any = None


@record
class Withdrawal:
    """The label of the instance is not known after all: earlier labels do not count."""

    at: int
    id: str
    payload: Any = None


LabelEvent: TypeAlias = Label | Amendment | Withdrawal
Event: TypeAlias = Prediction | Context | LabelEvent


def label_event(at: int, name: str, label: int, amends: bool, payload: Any = None) -> LabelEvent:
    """Return the event of a label: a withdrawal if it is MISSING, an amendment if it `amends`.

    >>> type(label_event(5, "p1", 1, True)).__name__, type(label_event(5, "p1", -1, True)).__name__
    ('Amendment', 'Withdrawal')
    """
    if label == MISSING:
        return Withdrawal(at, name, payload)
    return (Amendment if amends else Label)(at, name, label, payload)
