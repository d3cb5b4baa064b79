"""The embedded broker: one Kafka node, or three, that outlive the command that started them."""

import fcntl
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from platformdirs import user_data_path

from streams.broker.jars import Progress, class_path, lock
from streams.broker.node import Node
from streams.broker.plan import Plan, load_plan, new_plan
from streams.errors import BrokerError


def data_folder() -> Path:
    """Return where the embedded broker keeps its data unless told otherwise."""
    return user_data_path("hb", appauthor=False) / "broker"


class EmbeddedBroker:
    """A real Kafka on this machine, reachable from this machine only.

    As a context manager it is up inside the block and down after it:
    `with EmbeddedBroker(folder) as broker: connect(broker.address)`.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        brokers: int | None = None,
        secure: bool | None = None,
        port: int | None = None,
        changes: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ):
        self.data = (data or data_folder()).absolute()
        self.brokers = brokers
        self.secure = secure
        self.port = port
        self.changes = changes or {}
        self.progress = progress
        self._plan_file = self.data / "broker.json"

    @property
    def plan(self) -> Plan | None:
        """The cluster that the data folder holds, if any."""
        return load_plan(self._plan_file)

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, running or not."""
        plan = self.plan
        if plan is None:
            return []
        numbers = range(1, len(plan.nodes) + 1)
        return [Node(self.data / f"node-{n}", plan, n, self.changes) for n in numbers]

    @property
    def address(self) -> str:
        """Where clients connect."""
        plan = self.plan
        if plan is None or not any(node.alive for node in self.nodes):
            raise BrokerError("the embedded broker is not running; start it with: hb broker up")
        return plan.address

    def up(self) -> str:
        """Start what is not running, wait until it takes requests, and return the address."""
        class_path(self.progress)
        with self._alone():
            plan = self.plan
            if plan is None:
                plan = new_plan(lock().kafka, self.brokers or 1, bool(self.secure), self.port)
                plan.save(self._plan_file)
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.await_ready()
            return plan.address

    def down(self) -> None:
        """Stop every node cleanly and wait."""
        with self._alone():
            for node in self.nodes:
                node.process.terminate()
            for node in self.nodes:
                node.stop()

    def reset(self) -> None:
        """Stop it and delete its data."""
        self.down()
        shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The kernel drops this lock with its process, so a crash leaves nothing behind.
        with (self.data / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
