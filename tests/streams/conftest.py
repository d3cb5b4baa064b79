"""The broker that the tests share: real Kafka, one per session."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from streams.broker.keeper import temporary_broker
from streams.settings.broker import BrokerSettings


@pytest.fixture(scope="session")
def broker_address() -> Iterator[str]:
    """The address of a running Kafka of one node."""
    with temporary_broker() as broker:
        yield broker.address


@pytest.fixture(scope="session")
def broker(broker_address: str) -> BrokerSettings:
    """The settings that lead to that Kafka."""
    return BrokerSettings(bootstrap=broker_address)


@pytest.fixture
def prefix() -> str:
    """What the names of this test's topics begin with, so that tests do not meet."""
    return f"t{uuid4().hex[:12]}."
