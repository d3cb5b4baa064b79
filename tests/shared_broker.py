"""One broker for all test processes of a run, so that Java is started and warmed up once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams.broker.reaper import temporary_broker
from tests.streams.docker_broker import docker_broker, docker_wanted


@contextmanager
def shared_broker(folder: Path) -> Iterator[str]:
    """Yield the address of the broker that the processes with this folder share.

    The first that needs it starts it, and stops it when the others have left.
    """
    note = folder / "broker"
    with (folder / "broker.users").open("a") as users, (folder / "broker.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if note.exists():
            fcntl.flock(users, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
            yield note.read_text()
            return
        with _started() as address:
            note.write_text(address)
            fcntl.flock(lock, fcntl.LOCK_UN)
            yield address
            fcntl.flock(lock, fcntl.LOCK_EX)
            note.unlink()
            fcntl.flock(lock, fcntl.LOCK_UN)
            fcntl.flock(users, fcntl.LOCK_EX)


@contextmanager
def _started() -> Iterator[str]:
    """Start a Kafka of one node: in a container, or else the embedded one."""
    if docker_wanted():
        with docker_broker() as address:
            yield address
    else:
        with temporary_broker() as broker:
            yield broker.address
