"""The brokers that the tests share: real Kafka."""

import os
from uuid import uuid4

import pytest

from settings.sections.broker import BrokerSettings
from tests.conftest import AT_THE_END
from tests.shared_broker import shared_broker


@pytest.fixture(scope="session")
def broker_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a running Kafka of one node, the same for all test processes."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    # Until the end of the session and not of this process's last test: others may still need it.
    return request.config.stash[AT_THE_END].enter_context(shared_broker(folder))


@pytest.fixture(scope="session")
def broker(broker_address: str) -> BrokerSettings:
    """The settings that lead to that Kafka."""
    return BrokerSettings(bootstrap=broker_address)


@pytest.fixture
def prefix() -> str:
    """What the names of this test's topics begin with, so that tests do not meet."""
    return f"t{uuid4().hex[:12]}."
