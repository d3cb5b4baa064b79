"""The worker that `hb bench faults` kills and cuts off: it counts and answers every record.

python -m bench.faults.worker BROKER PREFIX FOLDER SESSION_TIMEOUT REQUEST_TIMEOUT

BROKER is the `[broker]` section as JSON; it names files with secrets and holds none.
"""

import logging
import sys
from pathlib import Path

import faust
import numpy as np
import orjson

from settings.sections.broker import BrokerSettings
from streams.engine import AgentSpec, Batch, EngineConfig, Outbox, Processor, TaskContext
from streams.engine.state import CountsTable, EntriesTable
from streams.faust.app import WebConfig, build_app
from streams.kafka.security import client_arguments

AGENT = "count"
CELLS = 200


class Remembering(Processor):
    """Answers with how often an id came before, so that wrong state shows up in the outputs."""

    def __init__(self, context: TaskContext, output: str) -> None:
        self._counts: CountsTable = context.tables["counts"]
        self._seen: EntriesTable = context.tables["seen"]
        self._output = output

    def process(self, batch: Batch, out: Outbox) -> None:
        """Count and answer each record."""
        records = [orjson.loads(value or b"null") for value in batch.values]
        answers = []
        for record in records:
            key = b"%d" % record["id"]
            before = int(self._seen.get(key) or b"0")
            self._seen.put(key, b"%d" % (before + 1))
            answers.append(orjson.dumps({"seq": record["seq"], "before": before}))
        cells = np.array([record["id"] % CELLS for record in records])
        if len(cells):
            self._counts.add(cells, np.ones((len(cells), 1), np.int64))
        out.emit_many(self._output, batch.keys, answers, batch.timestamps)


def config(
    broker: BrokerSettings,
    prefix: str,
    folder: Path,
    session_timeout: float,
    request_timeout: float,
) -> EngineConfig:
    """Return the engine's configuration for this job."""
    client = client_arguments(broker)
    client.pop("request_timeout_ms")
    return EngineConfig(
        prefix.rstrip("."),
        prefix,
        client,
        folder,
        prefix + "dead",
        session_timeout=session_timeout,
        request_timeout=request_timeout,
    )


def agent(prefix: str) -> AgentSpec:
    """Return the job."""
    return AgentSpec(
        AGENT,
        (prefix + "in",),
        lambda: [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")],
        lambda context: Remembering(context, prefix + "out"),
    )


def main(section: str, prefix: str, folder: str, *timeouts: str) -> None:
    """Run until told to stop, or killed."""
    session, request = map(float, timeouts)
    broker = BrokerSettings.model_validate(orjson.loads(section))
    app = build_app(config(broker, prefix, Path(folder), session, request), WebConfig(host=None))
    app.add_agent(agent(prefix))
    logging.getLogger("streams").setLevel(logging.INFO)
    faust.Worker(app, loglevel="info", redirect_stdouts=False).execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
