"""Quix Streams as its documentation shows it: state by message key in RocksDB, JSON in and out.

    python quix.py ADDRESS PREFIX FOLDER at-least-once|exactly-once

It runs in a separate environment, so it imports nothing from this project.
"""

import sys
from typing import Any


def count(value: dict[str, Any], state: Any) -> dict[str, Any]:
    """Count the records of the key, which is the cell, and answer."""
    number = state.get("n", 0) + 1
    state.set("n", number)
    return {"id": value["id"], "ll": "a", "y": 1, "n": number}


def main(address: str, prefix: str, folder: str, guarantee: str) -> None:
    """Run until told to stop."""
    from quixstreams import Application  # type: ignore[import-not-found]  # not in our environment

    app = Application(
        broker_address=address,
        consumer_group=prefix + "quix",
        auto_offset_reset="earliest",
        state_dir=folder,
        processing_guarantee=guarantee,
        loglevel="WARNING",
    )
    source = app.topic(prefix + "in", value_deserializer="json", key_deserializer="str")
    sink = app.topic(prefix + "out", value_serializer="json", key_serializer="str")
    frame = app.dataframe(source)
    frame = frame.apply(count, stateful=True)
    frame = frame.to_topic(sink, key=lambda value: str(value["id"]))
    app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
