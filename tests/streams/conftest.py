"""The broker that the tests share: real Kafka, one per session."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from streams.broker import EmbeddedBroker
from streams.settings.broker import BrokerSettings


@pytest.fixture(scope="session")
def broker_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running Kafka of one node."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(folder) as broker:
        yield broker.address


@pytest.fixture(scope="session")
def broker(broker_address: str) -> BrokerSettings:
    """The settings that lead to that Kafka."""
    return BrokerSettings(bootstrap=broker_address)


@pytest.fixture
def prefix() -> str:
    """What the names of this test's topics begin with, so that tests do not meet."""
    return f"t{uuid4().hex[:12]}."
