"""The broker that the tests share: real Kafka, one per session."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from settings.sections.broker import BrokerSettings
from streams.broker import USER, EmbeddedBroker
from streams.broker.reaper import temporary_broker
from tests.streams.docker_broker import docker_answers, docker_broker


@pytest.fixture(scope="session")
def broker_address() -> Iterator[str]:
    """The address of a running Kafka of one node: in a container, or else the embedded one."""
    if docker_answers():
        with docker_broker() as address:
            yield address
    else:
        with temporary_broker() as broker:
            yield broker.address


@pytest.fixture(scope="session")
def broker(broker_address: str) -> BrokerSettings:
    """The settings that lead to that Kafka."""
    return BrokerSettings(bootstrap=broker_address)


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[EmbeddedBroker]:
    """A cluster of three nodes; a test that kills one starts it again."""
    with temporary_broker(brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secure_broker() -> Iterator[EmbeddedBroker]:
    """A broker with TLS and passwords, where `hb` may do everything and `guest` nothing."""
    changes = {"allow.everyone.if.no.acl.found": "false"}
    with temporary_broker(users=(USER, "guest"), changes=changes) as broker:
        yield broker


@pytest.fixture
def prefix() -> str:
    """What the names of this test's topics begin with, so that tests do not meet."""
    return f"t{uuid4().hex[:12]}."
