"""What a cluster is: its nodes, ports and identity, remembered beside its data."""

import base64
import json
import random
import socket
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from streams.errors import BrokerError

LAYOUT = 1
HOST = "127.0.0.1"
# Below the ports that systems hand out for outgoing connections (32768 and up on Linux): otherwise
# a client could be sitting on a node's port when the node comes back.
PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class NodePorts:
    """The ports of one node: for clients, between brokers, and between controllers."""

    client: int
    internal: int
    controller: int
    certificate: int


@dataclass(frozen=True)
class Plan:
    """One cluster. Its shape (nodes, security) is fixed until its data is deleted."""

    kafka: str
    cluster: str
    secure: bool
    nodes: tuple[NodePorts, ...]

    @property
    def address(self) -> str:
        """Where clients connect."""
        return ",".join(f"{HOST}:{ports.client}" for ports in self.nodes)

    @property
    def certificate_address(self) -> str:
        """Where clients connect that show a certificate instead of a password."""
        return ",".join(f"{HOST}:{ports.certificate}" for ports in self.nodes)

    @property
    def voters(self) -> str:
        """The controllers, in Kafka's notation."""
        numbered = enumerate(self.nodes, 1)
        return ",".join(f"{number}@{HOST}:{ports.controller}" for number, ports in numbered)

    def with_new_ports(self, first: int | None = None) -> "Plan":
        """Return the same cluster on other ports that are free now."""
        return replace(self, nodes=free_ports(len(self.nodes), first))

    def save(self, file: Path) -> None:
        """Write it down, in one step."""
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({"layout": LAYOUT, **asdict(self)}, indent=1) + "\n")
        fresh.replace(file)


def new_plan(kafka: str, brokers: int, secure: bool, first: int | None) -> Plan:
    """Return a cluster that did not exist yet."""
    return Plan(kafka, _cluster_id(), secure, free_ports(brokers, first))


def load_plan(file: Path) -> Plan | None:
    """Read the cluster of a data folder; None if there is none."""
    if not file.is_file():
        return None
    saved = json.loads(file.read_text())
    if saved.pop("layout") != LAYOUT:
        raise BrokerError(f"{file.parent} was written by another version of hb; hb broker reset")
    nodes = tuple(NodePorts(**ports) for ports in saved.pop("nodes"))
    return Plan(**saved, nodes=nodes)


def free_ports(brokers: int, first: int | None = None) -> tuple[NodePorts, ...]:
    """Return free ports; with `first` the clients' ports are `first`, `first + 1`, …"""
    wanted = [] if first is None else list(range(first, first + brokers))
    if taken := [port for port in wanted if not _is_free(port)]:
        raise BrokerError(f"port {taken[0]} is taken; choose another one, or none at all")
    others = iter(random.sample(PORTS, len(PORTS)))
    free = (port for port in others if port not in wanted and _is_free(port))
    clients = wanted or [next(free) for _ in range(brokers)]
    return tuple(NodePorts(port, next(free), next(free), next(free)) for port in clients)


def taken_ports(plan: Plan) -> list[int]:
    """Return those ports of the plan that somebody listens on."""
    ports = [port for node in plan.nodes for port in asdict(node).values()]
    return [port for port in ports if not _is_free(port)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of a broker that just stopped linger; Kafka ignores them too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _cluster_id() -> str:
    # Kafka reads a leading dash as an option.
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text if not text.startswith("-") else _cluster_id()
