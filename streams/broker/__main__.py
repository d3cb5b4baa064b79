"""A bare way to run the broker before there is a command for it."""

import sys
from pathlib import Path

from streams.broker import EmbeddedBroker

if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    brokers = int(rest[0]) if rest else 1
    broker = EmbeddedBroker(data=Path(rest[1]) if len(rest) > 1 else None, brokers=brokers)
    if command == "up":
        sys.stdout.write(broker.up() + "\n")
    else:
        broker.down()
