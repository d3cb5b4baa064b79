"""What today's learners make of the recorded stream.

`hb replay` plays the recorded patients to untaught learners of today, so its figures change when an
algorithm does; everything else that is read from the recording must not. `python -m
tests.recorded.replayed` rewrites them: do so only after such a change, and say in the commit why
they moved.
"""

import json
import tarfile
import tempfile
from pathlib import Path

from streams.broker import EmbeddedBroker
from tests.recorded import kit

FIGURES = kit.HERE / "replayed.json"


def rewrite() -> None:
    """Replay both ensembles and write what comes out."""
    with tempfile.TemporaryDirectory(prefix="hb-replayed-") as scratch:
        folder = Path(scratch)
        with tarfile.open(kit.ARCHIVE) as tar:
            tar.extractall(folder, filter="data")
        kit.renew(folder)
        figures = {}
        with EmbeddedBroker(folder / "broker") as broker:
            for name in kit.ENSEMBLES:
                hb = kit.Commands(folder, broker.address, name)
                hb("topics", "create")  # those that are new since then
                figures[name] = kit.replayed(hb)
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    rewrite()
