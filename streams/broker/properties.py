"""The settings of one Kafka node, as its `server.properties`."""

from collections.abc import Mapping
from pathlib import Path

from streams.broker.certificates import BROKER_NAME, CLIENT_NAME, SecretFiles
from streams.broker.cluster_layout import HOST, NodePorts, Plan

# Kafka's defaults are for large machines and many tenants; here a user waits for the start.
_SMALL = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # The compaction buffer is allocated at start-up, 128 MB by default.
    "log.cleaner.dedupe.buffer.size": str(16 * 2**20),
    # On two cores more threads only compete for them: a patient passes through the pipeline in a
    # quarter less time than with twice as many.
    "num.io.threads": "2",
    "num.network.threads": "1",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}
# Listeners and their protocols. Brokers and controllers authenticate each other by certificate.
_PLAIN = {"CLIENT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
_SECURE = {"CLIENT": "SASL_SSL", "CERTIFICATE": "SSL", "CONTROLLER": "SSL"}


def server_properties(plan: Plan, number: int, root: Path) -> dict[str, str]:
    """Return all settings of node `number` (from 1) of the cluster in folder `root`."""
    return {
        **_SMALL,
        "process.roles": "broker,controller",
        "node.id": str(number),
        "controller.quorum.voters": plan.voters,
        "log.dirs": str(root / f"node-{number}" / "data"),
        **_copies(len(plan.nodes)),
        **_listeners(plan.nodes[number - 1], _SECURE if plan.secure else _PLAIN),
        **(_protection(plan, SecretFiles(root / "secrets")) if plan.secure else {}),
    }


def write_properties(file: Path, properties: Mapping[str, str]) -> None:
    """Write them in Kafka's format."""
    # A backslash would start an escape.
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


def _listeners(ports: NodePorts, protocols: Mapping[str, str]) -> dict[str, str]:
    listeners = {name: f"{name}://{HOST}:{getattr(ports, name.lower())}" for name in protocols}
    advertised = [address for name, address in listeners.items() if name != "CONTROLLER"]
    return {
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
        "inter.broker.listener.name": "CERTIFICATE" if "CERTIFICATE" in protocols else "CLIENT",
        "controller.listener.names": "CONTROLLER",
    }


def _protection(plan: Plan, files: SecretFiles) -> dict[str, str]:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "ssl.client.auth": "required",
        "listener.name.client.ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.client.scram-sha-512.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:CN={BROKER_NAME};User:CN={CLIENT_NAME};User:{plan.users[0]}",
        # Users without an access rule can do nothing; the first user adds the rules (`hb acls
        # apply`).
        "allow.everyone.if.no.acl.found": "false",
    }
