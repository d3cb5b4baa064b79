"""The engine: a Faust agent that processes batches, exactly once."""

import sys
from pathlib import Path

import faust
import numpy as np
import orjson

from bench.engine.peers import CELLS
from streams.engine import AgentSpec, Batch, EngineConfig, Outbox, Processor, TaskContext
from streams.engine.state import CountsTable
from streams.faust.app import WebConfig, build_app


class Counting(Processor):
    """Counts records per cell, a batch at a time."""

    def __init__(self, context: TaskContext, output: str) -> None:
        self._counts: CountsTable = context.tables["counts"]
        self._output = output

    def process(self, batch: Batch, out: Outbox) -> None:
        """Count and answer each record of a batch."""
        loads, dumps = orjson.loads, orjson.dumps
        ids = [loads(value or b"null")["id"] for value in batch.values]
        cells = np.array(ids) % CELLS
        numbers = self._counts.rows(cells)[:, 0] + _earlier(cells) + 1
        self._counts.add(cells, np.ones((len(cells), 1), np.int64))
        answers = [
            dumps({"id": name, "ll": "a", "y": 1, "n": number})
            for name, number in zip(ids, numbers.tolist(), strict=True)
        ]
        out.emit_many(self._output, [b"%d" % name for name in ids], answers, batch.timestamps)


def _earlier(cells: np.ndarray) -> np.ndarray:
    """Return for each record how many records of its cell came before it in the batch."""
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ranks = np.arange(len(cells)) - np.repeat(starts, np.diff(np.append(starts, len(cells))))
    earlier = np.empty(len(cells), np.int64)
    earlier[order] = ranks
    return earlier


def main(address: str, prefix: str, folder: str) -> None:
    """Run until told to stop."""
    config = EngineConfig(
        prefix.rstrip("."),
        prefix,
        {"bootstrap_servers": address},
        Path(folder),
        prefix + "dead",
    )
    app = build_app(config, WebConfig(host=None))
    app.add_agent(
        AgentSpec(
            "count",
            (prefix + "in",),
            lambda: [CountsTable("counts", 1, cells=CELLS, shared=False)],
            lambda context: Counting(context, prefix + "out"),
        )
    )
    faust.Worker(app, loglevel="warning", quiet=True, console_port=0).execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
