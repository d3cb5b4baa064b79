"""The clock that records are stamped by."""

import time

TOLERANCE = 300_000
"""How far the clocks of two machines may differ, in milliseconds, before one counts as wrong."""


def wall() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
