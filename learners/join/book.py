"""What the ledger holds, in order, and how it is written down and restored."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from learners.errors import LearnerError
from learners.join.entries import STAMP_BITS, Case, Codec, Packed, case_of, check
from learners.join.rules import COUNTERS, JoinRules


class Book:
    """The entries of a ledger, its clock and its counts."""

    def __init__(self, rules: JoinRules, codec: Codec | None = None) -> None:
        self.rules = rules
        self.codec = codec or Codec()
        self.clock = 0
        self.counts = dict.fromkeys(COUNTERS, 0)
        # Each queue in the order of stamps, oldest first. OrderedDict and not dict: finding the
        # oldest key of a dict walks over the holes that deleted keys left.
        self._parked: OrderedDict[str, Case] = OrderedDict()
        self._open: OrderedDict[str, Case] = OrderedDict()
        # A Case until the batch that diagnosed it is settled, packed from then on.
        self._diagnosed: OrderedDict[str, Case | Packed] = OrderedDict()
        self._over: OrderedDict[str, Packed] = OrderedDict()
        self._touched: dict[str, None] = {}
        self._in_batch = False
        self._last_stamp = self._last_opened = self._last_parked = self._settled_at = 0
        # The time of each learner's newest prediction.
        self._come = [0] * rules.learners

    def _stamp(self) -> int:
        """Return the number of the present moment, larger than all before."""
        self._last_stamp = max(self._last_stamp + 1, self.clock << STAMP_BITS)
        return self._last_stamp

    # In a backlog events are ahead of the clock, and what waits for others waits from its own time.

    def _stamp_open(self, at: int) -> int:
        """Return the number of the moment `at`, or of now if that is later, for an open case."""
        self._last_opened = max(self._last_opened + 1, max(self.clock, at) << STAMP_BITS)
        return self._last_opened

    def _stamp_parked(self, at: int) -> int:
        """Return the same for a parked one."""
        self._last_parked = max(self._last_parked + 1, max(self.clock, at) << STAMP_BITS)
        return self._last_parked

    @property
    def pending(self) -> int:
        """Return how many instances wait for a prediction, a diagnosis or a label."""
        return len(self._parked) + len(self._open) + len(self._diagnosed)

    def sizes(self) -> dict[str, int]:
        """Return how many instances are in each state."""
        return {
            "parked": len(self._parked),
            "open": len(self._open),
            "diagnosed": len(self._diagnosed),
            "over": len(self._over),
        }

    @property
    def parked_labels(self) -> int:
        """Return how many labels wait for a diagnosis."""
        resolved = self.counts["parked_label_settled"] + self.counts["parked_label_unknown"]
        return self.counts["label_parked"] - resolved

    # Writing it down. Between batches, and only what was touched since it was written last.

    def touched(self) -> list[str]:
        """Return the ids whose entries were made, changed or dropped since it was last asked."""
        if self._in_batch:
            raise LearnerError("ledger: settle the batch before it is written down")
        touched, self._touched = list(self._touched), {}
        return touched

    def dump(self, name: str) -> Packed | None:
        """Return the entry of one id, None if there is none (any more)."""
        case = self._open.get(name) or self._parked.get(name)
        if case is not None:
            return self.codec.pack(case.plain_open())
        found = self._diagnosed.get(name)
        return self._over.get(name) if found is None else found

    def dump_all(self) -> Iterator[tuple[str, Packed]]:
        """Return every id with its entry."""
        for queue in (self._parked, self._open, self._diagnosed, self._over):
            for name in queue:
                yield name, self.dump(name)

    def dump_head(self) -> dict[str, Any]:
        """Return what belongs to no id, as plain data; every batch may change it."""
        return {
            "clock": self.clock,
            "stamp": self._last_stamp,
            "opened": self._last_opened,
            "parked": self._last_parked,
            "settled_at": self._settled_at,
            "come": list(self._come),
            "counts": dict(self.counts),
        }

    def restore(self, head: Mapping[str, Any], entries: Iterable[tuple[str, Packed]]) -> None:
        """Fill a new ledger with what was written down; the order of `entries` does not matter."""
        if self._last_stamp:
            raise LearnerError("ledger: only a new ledger can be restored")
        self.clock, self._last_stamp = head["clock"], head["stamp"]
        self._last_opened, self._last_parked = head["opened"], head["parked"]
        self._settled_at = head["settled_at"]
        self._come = list(head["come"])
        self.counts.update(head["counts"])
        found = [(self._stamp_of(packed), name, packed) for name, packed in entries]
        for _, name, packed in sorted(found, key=itemgetter(0)):
            self._put_back(name, packed)

    def _stamp_of(self, packed: Packed) -> int:
        data = self.codec.unpack(packed)
        check(data, self.rules.learners)
        stamp: int = data[1]
        return stamp

    def _put_back(self, name: str, packed: Packed) -> None:
        data = self.codec.unpack(packed)
        if data[0] == "over":
            self._over[name] = packed
        elif data[0] == "diagnosed":
            self._diagnosed[name] = packed
        else:
            case = case_of(data)
            (self._open if case.heard else self._parked)[name] = case
