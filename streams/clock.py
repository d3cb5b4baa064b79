"""The clock that records are stamped by."""

import time

TOLERANCE = 300_000
"""Milliseconds by which the clocks of two machines may differ before we speak of a wrong one."""


def wall() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
