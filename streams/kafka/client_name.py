"""The name under which the broker knows a worker: it tells who is on its machine when it has died.

The broker notices a killed worker only when its session times out. A process of the same machine
can ask the kernel at once: the name holds the process id, and a digest that only processes share
that see each other under these ids (the same boot of the same machine, the same container).
"""

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path

_PREFIX = "hb"


def client_name() -> str:
    """Return this process's name."""
    return f"{_PREFIX}-{_machine() or 'elsewhere'}-{os.getpid()}"


def has_died(name: str) -> bool:
    """Tell whether the process of that name is known to be gone; one elsewhere never is."""
    parts = name.split("-")
    if parts[:2] != [_PREFIX, _machine()] or len(parts) != 3 or not parts[2].isdecimal():
        return False
    try:
        os.kill(int(parts[2]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False  # it is somebody else's, or no process id
    return False


@cache
def _machine() -> str | None:
    """Return what tells this machine and container from others; None where Linux does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        numbers = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return None
    return blake2b(boot + bytes(numbers), digest_size=8).hexdigest()
