"""Kafka of the pinned version in a container, for machines where a Docker engine answers.

`HB_TEST_BROKER` chooses the broker of the tests: `docker`, or `embedded`. Without it a container is
used if an engine answers and holds the image or can pull it, and else the embedded broker.
"""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from settings.sections.broker import BrokerSettings
from streams.broker.cluster_layout import new_plan
from streams.broker.jars import lock
from streams.broker.properties import server_properties
from streams.kafka.connection import await_broker

PATIENCE = 120.0


def docker_answers() -> bool:
    """A Docker engine answers: the one of DOCKER_HOST, or else this machine's.

    Asked by hand: the client library leaves a socket open where none does.
    """
    address = urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    remote = address.scheme == "tcp"
    with socket.socket(socket.AF_INET if remote else socket.AF_UNIX) as engine:
        engine.settimeout(2)
        try:
            engine.connect((address.hostname, address.port or 2375) if remote else address.path)
            engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in engine.recv(100)
        except OSError:
            return False


def docker_wanted() -> bool:
    """Whether tests run on a broker in a container."""
    chosen = os.environ.get("HB_TEST_BROKER")
    if chosen is None:
        return docker_answers() and has_image(_image())
    if chosen not in ("docker", "embedded"):
        raise ValueError(f"HB_TEST_BROKER must be docker or embedded, not {chosen!r}")
    return chosen == "docker"


def has_image(name: str) -> bool:
    """Tell whether the engine holds an image, after trying to pull it if it does not."""
    import docker  # noqa: PLC0415 - rarely needed

    client = docker.from_env()
    try:
        if not client.images.list(name):
            client.images.pull(name)
    except docker.errors.APIError:
        return False
    finally:
        client.close()
    return True


def _image() -> str:
    return f"apache/kafka:{lock().kafka}"


def variable(key: str) -> str:
    """Return the variable by which the image sets a server property.

    >>> variable("log.cleaner.dedupe.buffer.size")
    'KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE'
    """
    return "KAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


@contextmanager
def docker_broker() -> Iterator[str]:
    """Run the broker in a container, with the embedded one's properties, and give its address."""
    # testcontainers is imported here because most runs do not need it.
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    # Its helper container removes what a killed test run leaves behind. It is not worth failing
    # for: where its image cannot be had, `with` below cleans up.
    if not has_image(testcontainers_config.ryuk_image):
        testcontainers_config.ryuk_disabled = True
    plan = new_plan(lock().kafka, 1)
    container = DockerContainer(_image())
    # On this machine's own network the broker listens on loopback only, as the embedded one does.
    container.with_kwargs(network_mode="host")
    container.with_env("CLUSTER_ID", plan.cluster)
    for key, value in server_properties(plan, 1, Path("/tmp/kafka")).items():
        container.with_env(variable(key), value)
    with container:
        asyncio.run(await_broker(BrokerSettings(bootstrap=plan.address), PATIENCE))
        yield plan.address
