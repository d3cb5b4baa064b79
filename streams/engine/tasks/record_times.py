"""The time a record counts with: its own timestamp, unless that is implausible.

A record's timestamp is whatever its producer wrote. The join's clock moves by these times, and so
does the expiry of what waits for a label, so one stray stamp must not decide about other patients.
`docs/times.md` says what each time decides.

    0 … now                     its own
    up to TOLERANCE ahead       now: clocks of two machines differ
    further ahead, or none      that of the record before it in its partition; now for the first
"""

from collections.abc import Iterator
from dataclasses import replace

from streams.clock import TOLERANCE
from streams.kafka.batch import Batch

AHEAD, MISSING = "times ahead", "times missing"
"""The names under which a task counts corrected times."""


class RecordTimes:
    """Sets the times of the records of one task; `ahead` and `missing` count those corrected."""

    def __init__(self) -> None:
        self.ahead = self.missing = 0
        self._last: dict[str, int] = {}

    def corrected(self, batch: Batch, now: int) -> Batch:
        """Return a batch whose times lie between 1970 and `now`, in milliseconds."""
        times = batch.timestamps
        if not times:
            return batch
        if max(times) > now or min(times) < 0:
            self.ahead += sum(at > now + TOLERANCE for at in times)
            self.missing += sum(at < 0 for at in times)
            times = list(self._sound(times, self._last.get(batch.topic, now), now))
            batch = replace(batch, timestamps=times)
        self._last[batch.topic] = times[-1]
        return batch

    @staticmethod
    def _sound(times: list[int], before: int, now: int) -> Iterator[int]:
        for at in times:
            if 0 <= at <= now + TOLERANCE:
                before = min(at, now)
            yield before

    def counted(self) -> tuple[int, int]:
        """Return how many were ahead and how many had none since the last call."""
        counts, self.ahead, self.missing = (self.ahead, self.missing), 0, 0
        return counts
