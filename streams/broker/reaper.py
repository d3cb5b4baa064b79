"""Cleans up a temporary broker, whatever happens to the process that started it.

Run as a program with the broker's folder as argument: it waits until its standard input closes,
which the kernel does even for a killed parent, then kills the broker and deletes the folder.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from streams.broker.cluster import EmbeddedBroker


@contextmanager
def temporary_broker(**options: Any) -> Iterator[EmbeddedBroker]:
    """Run a broker that leaves nothing behind; options as for `EmbeddedBroker`."""
    folder = Path(mkdtemp(prefix="hb-broker-"))
    command = [sys.executable, "-m", __name__, str(folder)]
    # Our own module, in its own session: the parent handles Ctrl-C.
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    try:
        broker = EmbeddedBroker(folder, **options)
        broker.up()
        yield broker
    finally:
        keeper.communicate()


if __name__ == "__main__":
    sys.stdin.buffer.read()
    EmbeddedBroker(Path(sys.argv[1])).destroy()
