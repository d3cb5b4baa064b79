"""What the ledger keeps of an instance.

A `Case` gathers what comes before the diagnosis. Once the decision is known it becomes an entry:
plain data, packed by the caller's codec. In that form it waits for its label, is written down, and
is read back. A million instances may wait like this, so the form matters: packed into bytes, an
instance takes a third less memory, the garbage collector has nothing to follow in it, and a label
that comes days later finds all it needs in one stretch of cold memory.

A stamp numbers the moments at which instances change their state, and dates them: stamps grow
strictly, and the upper bits are milliseconds of stream time (a hybrid logical clock, Kulkarni et
al. 2014). Waits of one kind are equally long, so the order of stamps is the order of deadlines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from learners.arrays.types import MISSING
from learners.errors import LearnerError

STAMP_BITS = 20
"""A million changes fit into a millisecond; more of them borrow from the next."""

EXPIRED = -1
EVICTED = -2
WITHDRAWN = -3
"""What the entry of an instance that is over holds in place of a label."""


class OpenEntry(NamedTuple):
    """An instance before its diagnosis, parked or open; `label` is MISSING if none is parked."""

    tag: str
    stamp: int
    labels: Sequence[int]
    payloads: Sequence[Any]
    context: Any
    label: int
    label_payload: Any


class DiagnosedEntry(NamedTuple):
    """An instance that waits for its label; see `effects.Settle` for the fields."""

    tag: str
    stamp: int
    labels: Sequence[int]
    payloads: Sequence[Any]
    late: Sequence[int]
    context: Any
    complete: bool
    decision: Any


class OverEntry(NamedTuple):
    """An instance that is over for good: `outcome` is its label, or why it has none."""

    tag: str
    stamp: int
    outcome: int


class SettledEntry(NamedTuple):
    """An instance that is over, and whose label may still change; see `effects.Correct`.

    outcome     its label, or WITHDRAWN
    at          when its first label was learned
    diagnosed   the entry that waited for the label, packed
    """

    tag: str
    stamp: int
    outcome: int
    at: int
    taught: int
    serial: int
    diagnosed: "Packed"


Entry: TypeAlias = OpenEntry | DiagnosedEntry | SettledEntry | OverEntry
"""An entry as plain data: the tag comes first, then the stamp; payloads are the caller's own."""

Packed: TypeAlias = Any
"""Whatever the codec makes of an entry."""

_KINDS: dict[str, type[Entry]] = {
    "open": OpenEntry,
    "diagnosed": DiagnosedEntry,
    "settled": SettledEntry,
    "over": OverEntry,
}


def entry_of(fields: Sequence[Any]) -> Entry:
    """Return the entry whose fields the codec has unpacked."""
    kind = _KINDS.get(fields[0])
    if kind is None:
        raise LearnerError("ledger: an entry was not written by this ledger")
    return kind(*fields)


def _same(data: Any) -> Any:
    return data


def _nothing(_data: Any) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Codec:
    """How entries are packed; left as they are unless told otherwise.

    pack, unpack   `unpack` may return lists where `pack` was given tuples
    keep           what of a prediction's payload is needed after the diagnosis; given its own
                   result, it returns it unchanged
    load           makes a prediction's payload from what `unpack` or `keep` returned
    keep_context   what of a context's payload is needed after the diagnosis
    weigh          how many bytes a label's or a context's payload takes that `shrink` could save
    shrink         makes such a payload small, whatever it holds
    size           how many bytes a packed entry takes
    """

    pack: Callable[[Any], Packed] = _same
    unpack: Callable[[Packed], Sequence[Any]] = _same
    keep: Callable[[Any], Any] = _same
    load: Callable[[Any], Any] = _same
    keep_context: Callable[[Any], Any] = _same
    weigh: Callable[[Any], int] = _nothing
    shrink: Callable[[Any], Any] = _same
    size: Callable[[Packed], int] = _nothing

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two predictions' payloads are the same in what is kept of them."""
        return bool(self.pack(self.keep(one)) == self.pack(self.keep(other)))

    def same_context(self, one: Any, other: Any) -> bool:
        """Tell whether two contexts' payloads are the same in what is kept of them."""
        return bool(self.pack(self.keep_context(one)) == self.pack(self.keep_context(other)))


@dataclass(slots=True)
class Settled:
    """A settled instance whose entry changes in this batch, and is packed at its end."""

    stamp: int
    outcome: int
    at: int
    taught: int
    serial: int
    entry: "Case | Packed"

    def packed(self, codec: Codec) -> Packed:
        """Return the entry, packed; the decision must be known."""
        if isinstance(self.entry, Case):
            self.entry = self.entry.packed(codec)
        fields = self.stamp, self.outcome, self.at, self.taught, self.serial, self.entry
        return codec.pack(("settled", *fields))


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

    @classmethod
    def of(cls, entry: OpenEntry | DiagnosedEntry) -> "Case":
        """Return the case that became this entry."""
        case = cls(entry.stamp, len(entry.labels))
        case.labels, case.payloads = list(entry.labels), list(entry.payloads)
        case.heard = len(case.labels) - case.labels.count(MISSING)
        case.context = entry.context
        if isinstance(entry, OpenEntry):
            case.label, case.label_payload = entry.label, entry.label_payload
        else:
            case.late = tuple(entry.late)
            case.complete, case.decision = entry.complete, entry.decision
        return case

    def missing(self) -> tuple[int, ...]:
        """Return the learners whose prediction has not come."""
        if self.heard == len(self.labels):
            return ()
        return tuple(i for i, label in enumerate(self.labels) if label == MISSING)

    def open_entry(self) -> OpenEntry:
        """Return the entry of the case before its diagnosis."""
        return OpenEntry(
            "open",
            self.stamp,
            tuple(self.labels),
            tuple(self.payloads),
            self.context,
            self.label,
            self.label_payload,
        )

    def diagnosed_fields(self, codec: Codec) -> tuple[Any, ...]:
        """Return the entry of the case after its diagnosis, the fields of a `DiagnosedEntry`."""
        keep, context = codec.keep, self.context
        return (
            "diagnosed",
            self.stamp,
            self.labels,
            [None if payload is None else keep(payload) for payload in self.payloads],
            self.late,
            None if context is None else codec.keep_context(context),
            self.complete,
            self.decision,
        )

    def packed(self, codec: Codec) -> Packed:
        """Return the entry of the case after its diagnosis, packed."""
        return codec.pack(self.diagnosed_fields(codec))
