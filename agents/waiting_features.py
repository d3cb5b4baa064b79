"""Features of instances that wait for their label, in the local learner's own state."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats
from settings.model import Settings
from settings.sections.base import milliseconds
from streams.clock import wall
from streams.engine.state.entries import EntriesTable


class WaitingFeatures:
    """Features of instances that wait for their label, oldest first; bounded, and counted."""

    def __init__(self, table: EntriesTable | None, settings: Settings, d: int) -> None:
        self._table = table
        self._ttl = milliseconds(settings.ensemble.label_ttl + settings.ensemble.fusion_timeout)
        self._most = settings.ensemble.max_pending
        self._at: OrderedDict[str, int] = OrderedDict()
        self._size = 8 * d
        self._newest = 0
        if table is not None:
            # What was stamped by a clock that ran ahead begins to wait now.
            now = wall()
            waiting = [
                (min(int.from_bytes(v[:8], "big"), now), k.decode()) for k, v in table.items()
            ]
            self._at.update((name, at) for at, name in sorted(waiting))
            self._newest = max(self._at.values(), default=0)

    def keep(self, ids: Sequence[str], rows: Floats, times: Sequence[int]) -> None:
        """Keep the rows of instances that were decided just now.

        One whose time is older than another's came later all the same, and waits as long.
        """
        if self._table is None:
            return
        data = np.ascontiguousarray(rows).tobytes()
        for k, (name, time) in enumerate(zip(ids, times, strict=True)):
            self._newest = at = max(self._newest, time)
            self._at[name] = at
            self._at.move_to_end(name)
            row = data[k * self._size : (k + 1) * self._size]
            self._table.put(name.encode(), at.to_bytes(8, "big") + row)

    def pop(self, name: str) -> bytes | None:
        """Return the row of an instance and drop it; None if it is not kept (any more)."""
        if self._table is None or self._at.pop(name, None) is None:
            return None
        found = self._table.get(name.encode())
        self._table.delete(name.encode())
        return None if found is None else found[8:]

    def expire(self, now: int) -> int:
        """Drop what is too old or too much; return how many."""
        dropped = 0
        while self._at:
            name, at = next(iter(self._at.items()))
            if at + self._ttl > now and len(self._at) <= self._most:
                break
            self.pop(name)
            dropped += 1
        return dropped
