"""What the tests of faults share."""

from uuid import uuid4

import pytest

from tests.streams.conftest import broker_address

__all__ = ["broker_address"]


@pytest.fixture
def prefix() -> str:
    """What the names of this test's topics begin with."""
    return f"t{uuid4().hex[:12]}."
