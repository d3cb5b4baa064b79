"""State holds what patients are like, so only the worker's user may read it."""

import os
from pathlib import Path

UMASK = 0o077
"""For worker processes: RocksDB creates its files with whatever the umask leaves."""


def make_private(folder: Path) -> None:
    """Create a folder that only this user can read, or make one so with everything in it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for place, _, files in os.walk(folder):
        Path(place).chmod(0o700)
        for name in files:
            try:
                (Path(place) / name).chmod(0o600)
            except FileNotFoundError:  # another worker may be at work in it
                continue
