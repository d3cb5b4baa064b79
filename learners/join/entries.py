"""What the ledger keeps of an instance.

A `Case` gathers what comes before the diagnosis. Once the decision is known it becomes plain data,
packed by the caller's codec, and in that form it waits for its label, is written down, and is read
back. A million instances may wait like this, so the form matters: packed into bytes, an instance
takes a third less memory, the garbage collector has nothing to follow in it, and a label that comes
days later finds all it needs in one place of cold memory.

A stamp numbers the moments at which instances change their state, and dates them: stamps grow
strictly, and the upper bits are milliseconds of stream time (a hybrid logical clock, Kulkarni et
al. 2014). Waits of one kind are equally long, so the order of stamps is the order of deadlines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from learners.arrays.types import MISSING
from learners.errors import LearnerError

STAMP_BITS = 20
"""A million changes fit into a millisecond; more of them borrow from the next."""

EXPIRED = -1
EVICTED = -2

Plain: TypeAlias = tuple[Any, ...]
"""An entry as plain data. The tag comes first, then the stamp; payloads are the caller's own.

("open", stamp, labels, payloads, context, label, label payload)
("diagnosed", stamp, labels, payloads, late, context, complete, decision)
("over", stamp, label, or EXPIRED or EVICTED in its place)
"""

Packed: TypeAlias = Any
"""Whatever the codec makes of plain data."""


def _same(data: Any) -> Any:
    return data


@dataclass(frozen=True, slots=True)
class Codec:
    """How entries are kept and written down; as they are, unless told otherwise.

    pack, unpack   `unpack` may return lists where `pack` was given tuples
    keep           what of a prediction's payload is of use after the diagnosis; what it returns is
                   returned unchanged if it is asked again
    """

    pack: Callable[[Any], Packed] = _same
    unpack: Callable[[Packed], Sequence[Any]] = _same
    keep: Callable[[Any], Any] = _same

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two payloads are the same in what is kept of them."""
        return bool(self.pack(self.keep(one)) == self.pack(self.keep(other)))


class Case:
    """An instance that is not diagnosed yet, or whose decision was not handed back yet."""

    __slots__ = (
        "complete",
        "context",
        "decision",
        "heard",
        "label",
        "label_payload",
        "labels",
        "late",
        "payloads",
        "stamp",
    )

    def __init__(self, stamp: int, learners: int) -> None:
        self.stamp = stamp
        self.labels = [MISSING] * learners
        self.payloads: list[Any] = [None] * learners
        self.heard = 0
        self.context: Any = None
        self.label = MISSING
        self.label_payload: Any = None
        self.late: tuple[int, ...] = ()
        self.complete = False
        self.decision: Any = None

    def missing(self) -> tuple[int, ...]:
        """Return the learners that were not heard."""
        if self.heard == len(self.labels):
            return ()
        return tuple(i for i, label in enumerate(self.labels) if label == MISSING)

    def plain_open(self) -> Plain:
        """Return the case before its diagnosis as plain data."""
        votes = tuple(self.labels), tuple(self.payloads)
        return "open", self.stamp, *votes, self.context, self.label, self.label_payload

    def plain_diagnosed(self, keep: Callable[[Any], Any]) -> Plain:
        """Return the case after its diagnosis as plain data."""
        return (
            "diagnosed",
            self.stamp,
            tuple(self.labels),
            tuple([None if payload is None else keep(payload) for payload in self.payloads]),
            self.late,
            self.context,
            self.complete,
            self.decision,
        )


def case_of(data: Sequence[Any]) -> Case:
    """Return the case that was made into plain data."""
    tag, stamp, labels, payloads, *rest = data
    case = Case(stamp, len(labels))
    case.labels, case.payloads = list(labels), list(payloads)
    case.heard = len(labels) - case.labels.count(MISSING)
    if tag == "open":
        case.context, case.label, case.label_payload = rest
    else:
        late, case.context, case.complete, case.decision = rest
        case.late = tuple(late)
    return case


def check(data: Sequence[Any], learners: int) -> None:
    """Refuse plain data that this ledger cannot continue with."""
    if data[0] not in {"open", "diagnosed", "over"}:
        raise LearnerError("ledger: an entry was not written by this ledger")
    if data[0] != "over" and len(data[2]) != learners:
        raise LearnerError(
            f"ledger: an entry was written for {len(data[2])} local learners, "
            f"and the settings name {learners}"
        )
