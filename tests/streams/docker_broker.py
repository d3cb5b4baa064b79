"""Kafka of the pinned version in a container, for machines where a Docker engine answers."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from settings.sections.broker import BrokerSettings
from streams.broker.jars import lock
from streams.broker.plan import HOST, new_plan
from streams.broker.properties import server_properties
from streams.kafka.connection import await_broker


def docker_answers() -> bool:
    """A Docker engine of this machine answers.

    Asked by hand: the client library leaves a socket open where none does.
    """
    path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(2)
        try:
            engine.connect(path)
            engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in engine.recv(100)
        except OSError:
            return False


def variable(key: str) -> str:
    """Return the variable by which the image sets a server property.

    >>> variable("log.cleaner.dedupe.buffer.size")
    'KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE'
    """
    return "KAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


@contextmanager
def docker_broker() -> Iterator[str]:
    """Run the broker in a container, with the embedded one's properties, and give its address."""
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - rarely needed

    plan = new_plan(lock().kafka, 1)
    properties = server_properties(plan, 1, Path("/tmp/kafka"))
    properties["listeners"] = properties["listeners"].replace(HOST, "0.0.0.0")
    container = DockerContainer(f"apache/kafka:{plan.kafka}")
    for key, value in properties.items():
        container.with_env(variable(key), value)
    port = plan.nodes[0].client
    container.with_bind_ports(f"{port}/tcp", (HOST, port))
    with container:
        asyncio.run(await_broker(BrokerSettings(bootstrap=plan.address), 60))
        yield plan.address
