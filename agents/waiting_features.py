"""Features of instances that wait for their label, in the local learner's own state.

An entry is the time from which it waits, then the row: in the clear as doubles, or encrypted. An
encrypted one is longer than any row in the clear, so both can be told apart, and rows from before
keys were set are read as well.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np

from agents.sealing import KeyMissingError, KeyRing, WrongKeyError, learner_rings
from learners.arrays.types import Floats
from schemas.sealed import Sealed
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.clock import wall
from streams.engine.errors import FinalError
from streams.engine.state.entries import EntriesTable

_TIME = 8


class RowFormat:
    """How a learner's waiting rows are written and read; encrypted if the learner has keys."""

    def __init__(self, settings: Settings, learner: str) -> None:
        rings = learner_rings(settings, learner)
        self._ring = rings.waiting if rings else KeyRing("", {})
        self._learner = learner
        self.size = 8 * len(settings.learners[learner].features)

    def write(self, name: str, row: bytes) -> bytes:
        """Return a row as it is kept."""
        if not self._ring:
            return row
        key, content = self._ring.seal(name, row)
        return bytes([len(key)]) + key.encode() + content

    def read(self, name: str, stored: bytes) -> bytes:
        """Return a row as it was; raise FinalError if its key is not there."""
        if len(stored) == self.size:
            return stored
        sealed = _sealed(stored)
        try:
            return self._ring.open(name, sealed)
        except KeyMissingError:
            raise FinalError(
                f"learner {self._learner}: waiting features are encrypted with the key"
                f" {sealed.key!r}; add it to privacy.keys.{self._learner}, after the key that"
                " encrypts"
            ) from None
        except WrongKeyError:
            raise FinalError(
                f"learner {self._learner}: waiting features cannot be decrypted with the key"
                f" {sealed.key!r}: another key of that id encrypted them, or they were altered"
            ) from None

    def key_of(self, stored: bytes) -> str | None:
        """Return the id of the key that a row is under, None for one in the clear."""
        return None if len(stored) == self.size else _sealed(stored).key


def _sealed(stored: bytes) -> Sealed:
    end = 1 + stored[0] if stored else 0
    return Sealed(stored[1:end].decode("ascii", "replace"), stored[end:])


class WaitingFeatures:
    """Features of instances that wait for their label, oldest first; bounded, and counted."""

    def __init__(self, table: EntriesTable | None, settings: Settings, learner: str) -> None:
        self._table = table
        self._ttl = milliseconds(settings.ensemble.label_ttl + settings.ensemble.fusion_timeout)
        self._most = settings.ensemble.max_pending
        self._at: OrderedDict[str, int] = OrderedDict()
        self._rows = RowFormat(settings, learner)
        self._newest = 0
        if table is not None:
            self._restore(table)

    def _restore(self, table: EntriesTable) -> None:
        # What was stamped by a clock that ran ahead begins to wait now.
        now, waiting, keys = wall(), [], dict[str | None, tuple[str, bytes]]()
        for key, value in table.items():
            name = key.decode()
            waiting.append((min(int.from_bytes(value[:_TIME], "big"), now), name))
            keys.setdefault(self._rows.key_of(value[_TIME:]), (name, value[_TIME:]))
        self._at.update((name, at) for at, name in sorted(waiting))
        self._newest = max(self._at.values(), default=0)
        # A key that is missing or wrong is reported now, not when a label comes weeks later.
        for name, stored in keys.values():
            self._rows.read(name, stored)

    def keep(self, ids: Sequence[str], rows: Floats, times: Sequence[int]) -> None:
        """Keep the rows of instances that were decided just now.

        One whose time is older than another's still came later, and waits as long.
        """
        if self._table is None:
            return
        data, size = np.ascontiguousarray(rows).tobytes(), self._rows.size
        for k, (name, time) in enumerate(zip(ids, times, strict=True)):
            self._newest = at = max(self._newest, time)
            self._at[name] = at
            self._at.move_to_end(name)
            stored = self._rows.write(name, data[k * size : (k + 1) * size])
            self._table.put(name.encode(), at.to_bytes(_TIME, "big") + stored)

    def pop(self, name: str) -> bytes | None:
        """Return the row of an instance and drop it; None if it is not kept (any more)."""
        row = self._take(name)
        return None if row is None else self._rows.read(name, row[_TIME:])

    def _take(self, name: str) -> bytes | None:
        """Drop the entry of an instance and return it."""
        if self._table is None or self._at.pop(name, None) is None:
            return None
        packed = self._table.get(name.encode())
        self._table.delete(name.encode())
        return packed

    def ids(self) -> Iterator[str]:
        """Return the ids of all instances that wait."""
        return iter(self._at)

    def drop(self, name: str) -> bool:
        """Drop the row of an instance unread; tell whether there was one."""
        return self._take(name) is not None

    def expire(self, now: int) -> int:
        """Drop what is too old or too much; return how many."""
        dropped = 0
        while self._at:
            name, at = next(iter(self._at.items()))
            if at + self._ttl > now and len(self._at) <= self._most:
                break
            self._take(name)
            dropped += 1
        return dropped
