"""The settings of one Kafka node, as its `server.properties`."""

from collections.abc import Mapping
from pathlib import Path

from streams.broker.plan import HOST, NodePorts, Plan

# Kafka's defaults are for large machines and many tenants; here one person waits for the start.
SMALL = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # The compaction buffer is allocated at the start, 128 MB by default.
    "log.cleaner.dedupe.buffer.size": str(16 * 2**20),
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}


def server_properties(
    plan: Plan, number: int, data: Path, changes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return everything that node `number` (from 1) of the cluster is told."""
    return {
        **SMALL,
        "process.roles": "broker,controller",
        "node.id": str(number),
        "controller.quorum.voters": plan.voters,
        "log.dirs": str(data),
        **_listeners(plan.nodes[number - 1]),
        **_copies(len(plan.nodes)),
        **(changes or {}),
    }


def write_properties(file: Path, properties: Mapping[str, str]) -> None:
    """Write them where only this user can read them: they may hold passwords."""
    file.touch(mode=0o600)
    # A backslash would begin an escape.
    lines = [f"{key}={value}".replace("\\", "\\\\") for key, value in sorted(properties.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _copies(brokers: int) -> dict[str, str]:
    copies = min(brokers, 3)
    in_sync = max(copies - 1, 1)
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.replication.factor": str(copies),
    }


def _listeners(ports: NodePorts) -> dict[str, str]:
    client = f"CLIENT://{HOST}:{ports.client}"
    return {
        "listeners": f"{client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": client,
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
    }
