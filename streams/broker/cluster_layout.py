"""What a cluster is: its nodes, ports, users and identity, remembered beside its data."""

import base64
import json
import random
import socket
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from settings.errors import BrokerError
from streams.broker.jars import parts_of

LAYOUT = 1
HOST = "127.0.0.1"
# Below the ports that systems use for outgoing connections (32768 and up on Linux): otherwise a
# client could be occupying a node's port when the node restarts.
PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class NodePorts:
    """The ports of one node, named after its listeners; without security only two are used."""

    client: int
    certificate: int
    controller: int


@dataclass(frozen=True)
class Plan:
    """One cluster. Its shape (nodes, users) is fixed until its data is deleted.

    `users` log in with passwords; the first may do everything. Without users there is no security.
    """

    kafka: str
    cluster: str
    users: tuple[str, ...]
    nodes: tuple[NodePorts, ...]

    @property
    def secure(self) -> bool:
        """Connections are encrypted and authenticated."""
        return bool(self.users)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return ",".join(f"{HOST}:{ports.client}" for ports in self.nodes)

    @property
    def certificate_address(self) -> str:
        """Where clients of a secure cluster connect that authenticate by certificate only."""
        return ",".join(f"{HOST}:{ports.certificate}" for ports in self.nodes)

    @property
    def voters(self) -> str:
        """The controllers, in Kafka's notation."""
        numbered = enumerate(self.nodes, 1)
        return ",".join(f"{number}@{HOST}:{ports.controller}" for number, ports in numbered)

    def moved(self, first: int | None = None) -> "Plan":
        """Return the same cluster on other ports that are free now."""
        return replace(self, nodes=free_ports(len(self.nodes), first))

    def save(self, file: Path) -> None:
        """Write it to disk atomically."""
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({"layout": LAYOUT, **asdict(self)}, indent=1) + "\n")
        fresh.replace(file)


def new_plan(
    kafka: str, brokers: int, users: tuple[str, ...] = (), first: int | None = None
) -> Plan:
    """Return a new cluster; its clients' ports start at `first`, if given."""
    return Plan(kafka, _cluster_id(), users, free_ports(brokers, first))


def load_plan(file: Path) -> Plan | None:
    """Read the cluster of a data folder; None if there is none."""
    if not file.is_file():
        return None
    try:
        saved = json.loads(file.read_text())
        layout, nodes, users = saved.pop("layout"), saved.pop("nodes"), saved.pop("users")
        parts_of(saved["kafka"])
        plan = Plan(**saved, users=tuple(users), nodes=tuple(NodePorts(**node) for node in nodes))
    except (ValueError, LookupError, TypeError, AttributeError):
        layout = None
    if layout != LAYOUT:
        raise BrokerError(
            f"{file} cannot be read by this version of hb; to start again: hb broker reset"
        )
    return plan


def free_ports(brokers: int, first: int | None = None) -> tuple[NodePorts, ...]:
    """Return free ports; with `first` the clients' ports are `first`, `first + 1`, …"""
    numbers = [] if first is None else list(range(first, first + brokers))
    if busy := [port for port in numbers if not is_free(port)]:
        raise BrokerError(f"port {busy[0]} is taken; choose another one, or let hb choose")
    shuffled = random.sample(PORTS, len(PORTS))
    free = (port for port in shuffled if port not in numbers and is_free(port))
    clients = numbers or [next(free) for _ in range(brokers)]
    return tuple(NodePorts(port, next(free), next(free)) for port in clients)


def used_ports(plan: Plan) -> list[int]:
    """Return the ports that the cluster listens on."""
    used = ("client", "certificate", "controller") if plan.secure else ("client", "controller")
    return [getattr(node, name) for node in plan.nodes for name in used]


def is_free(port: int) -> bool:
    """The port is free."""
    with socket.socket() as probe:
        # Connections of a broker that just stopped linger; Kafka ignores them too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Kafka's tool would read a leading dash as an option.
    return _cluster_id() if text.startswith("-") else text
