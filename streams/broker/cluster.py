"""The embedded broker: one Kafka node, or three, that outlive the command that started them."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from platformdirs import user_data_path

from settings.errors import BrokerError
from settings.sections.base import Secret
from settings.sections.broker import BrokerSettings, SecuritySettings
from streams.broker.certificates import SecretFiles
from streams.broker.cluster_layout import Plan, is_free, load_plan, new_plan, used_ports
from streams.broker.jars import Progress, lock, locks, parts_of
from streams.broker.node import Node, PortTakenError, node_process
from streams.broker.training import prepare

USER = "hb"
_WAY_OUT = "name another folder, or delete this one's data: hb broker reset"


def data_folder() -> Path:
    """Return where the embedded broker keeps its data by default."""
    return user_data_path("hb", appauthor=False) / "broker"


class EmbeddedBroker:
    """A real Kafka on this machine, reachable from this machine only.

    As a context manager it is up inside the block and down after it:
    `with EmbeddedBroker(folder) as broker: connect(broker.address)`.

    Args:
        data: its folder; the user's data folder if None.
        brokers: how many nodes; what the folder holds, or one, if None.
        users: who may log in, which makes it secure; what the folder holds, or nobody, if None.
        port: the first node's port for clients; a free one if None.
        kafka: which version, such as 4.0; that of `HB_KAFKA`, of the folder, or the newest if None.
        changes: further properties for the servers.
        short_lived: Java takes no time to compile what would encrypt faster later.
        progress: receives the progress of the first download.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        brokers: int | None = None,
        users: tuple[str, ...] | None = None,
        port: int | None = None,
        kafka: str | None = None,
        changes: Mapping[str, str] | None = None,
        short_lived: bool = False,
        progress: Progress | None = None,
    ):
        self.data = (data or data_folder()).absolute()
        self.brokers = brokers
        self.users = users
        self.port = port
        self.kafka = kafka or os.environ.get("HB_KAFKA")
        self.changes = changes or {}
        self.short_lived = short_lived
        self.progress = progress or Progress()
        self._plan_file = self.data / "broker.json"

    @property
    def plan(self) -> Plan | None:
        """The cluster that the data folder holds, if any."""
        return load_plan(self._plan_file)

    @property
    def exists(self) -> bool:
        """The data folder holds a cluster."""
        return self._plan_file.exists()

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, running or not."""
        plan = self.plan
        return [] if plan is None else self._nodes_of(plan)

    @property
    def running(self) -> bool:
        """At least one node is running."""
        return any(node.alive for node in self.nodes)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return self._running_plan().address

    def settings(self, user: str | None = None) -> BrokerSettings:
        """Return the `[broker]` section for connecting as `user`, or as the first user."""
        plan = self._running_plan()
        if not plan.secure:
            return BrokerSettings(bootstrap=plan.address)
        user = user or plan.users[0]
        files = SecretFiles(self.data / "secrets")
        security = SecuritySettings(
            protocol="sasl_ssl",
            ca_file=files.authority,
            username=user,
            password=Secret(file=files.password(user)),
        )
        return BrokerSettings(bootstrap=plan.address, security=security)

    def certificate_settings(self) -> BrokerSettings:
        """Return the `[broker]` section for a client with a certificate instead of a password."""
        plan = self._running_plan()
        files = SecretFiles(self.data / "secrets")
        security = SecuritySettings(
            protocol="ssl",
            ca_file=files.authority,
            cert_file=files.client_certificate,
            key_file=files.client_key,
        )
        return BrokerSettings(bootstrap=plan.certificate_address, security=security)

    def up(self) -> str:
        """Start nodes that are not running, wait until they accept requests; return the address."""
        prepare(self._version(self.plan), self.progress)
        with self._alone():
            for node in self.nodes:
                node.process.recover()
            plan = self._settle(self.plan)
            try:
                self._start(plan)
            except PortTakenError:
                self._start(self._move(plan))
        return self.address

    def down(self) -> list[Node]:
        """Stop every node and wait; return those that did not stop and had to be killed."""
        if not self.exists:
            return []
        with self._alone():
            return self._stop(self.nodes)

    def destroy(self) -> None:
        """Kill it and delete its data, but nothing else in its folder."""
        if not self.data.exists():
            return
        with self._alone():
            # By folder, not by plan: the plan may be unreadable.
            for folder in self.data.glob("node-*"):
                process = node_process(folder)
                process.recover()
                process.kill()
            for folder in (*self.data.glob("node-*"), *self.data.glob("secrets")):
                shutil.rmtree(folder)
            self._plan_file.unlink(missing_ok=True)
            (self.data / "lock").unlink(missing_ok=True)
        with suppress(OSError):  # not empty: it holds other files
            self.data.rmdir()

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def _running_plan(self) -> Plan:
        plan = self.plan
        if plan is None or not self.running:
            raise BrokerError("the embedded broker is not running; start it with: hb broker up")
        return plan

    def _nodes_of(self, plan: Plan) -> list[Node]:
        numbers = range(1, len(plan.nodes) + 1)
        return [
            Node(self.data, plan, number, self.changes, short_lived=self.short_lived)
            for number in numbers
        ]

    def _settle(self, plan: Plan | None) -> Plan:
        """Return the cluster to start: the one in the folder if it fits, or a new one."""
        if plan is None:
            plan = new_plan(self._version(None), self.brokers or 1, self.users or (), self.port)
        elif not self.running:
            plan = replace(plan, kafka=self._version(plan))
            if self._wants_other_port(plan) or not all(map(is_free, used_ports(plan))):
                plan = self._move(plan)
        self._check_shape(plan)
        plan.save(self._plan_file)
        if plan.secure:
            SecretFiles(self.data / "secrets").make(plan.users)
        return plan

    def _version(self, plan: Plan | None) -> str:
        """Return which Kafka to start: as asked for, else as before, else the newest."""
        before = plan.kafka if plan else None
        if self.kafka is not None:
            asked = lock(self.kafka).kafka
            if before and parts_of(asked) < parts_of(before):
                raise BrokerError(
                    f"{self.data} holds data of Kafka {before}, which Kafka {asked} may not be able"
                    f" to read; {_WAY_OUT}"
                )
            return asked
        return before if before in {pinned.kafka for pinned in locks()} else lock().kafka

    def _check_shape(self, plan: Plan) -> None:
        if self.brokers not in (None, len(plan.nodes)):
            raise BrokerError(f"{self.data} holds {len(plan.nodes)} broker(s); {_WAY_OUT}")
        if self.users is not None and self.users != plan.users:
            difference = "that is secure" if plan.secure else "that is not secure"
            if self.users and plan.secure:
                difference = "with other users"
            raise BrokerError(f"{self.data} holds a broker {difference}; {_WAY_OUT}")
        if self._wants_other_port(plan):
            raise BrokerError(f"the broker runs at {plan.address}; to move it: hb broker down")
        if self.kafka is not None and self._version(plan) != plan.kafka:
            raise BrokerError(f"the broker runs Kafka {plan.kafka}; stop it first: hb broker down")

    def _wants_other_port(self, plan: Plan) -> bool:
        return self.port not in (None, plan.nodes[0].client)

    def _move(self, plan: Plan) -> Plan:
        moved = plan.moved(self.port)
        moved.save(self._plan_file)
        return moved

    def _start(self, plan: Plan) -> None:
        nodes = self._nodes_of(plan)
        idle = [node for node in nodes if not node.alive]
        try:
            for node in idle:
                node.launch()
            for node in nodes:
                node.await_ready()
        except (BrokerError, KeyboardInterrupt):
            self._stop(idle)
            raise

    def _stop(self, nodes: list[Node]) -> list[Node]:
        # All at once: a node left alone waits a long time for a majority that will not come.
        for node in nodes:
            node.process.terminate()
        return [node for node in nodes if not node.stop()]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The kernel releases this lock when the process ends, so a crash leaves nothing behind.
            with (self.data / "lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise BrokerError(f"{self.data} cannot be used: {error.strerror}") from error
