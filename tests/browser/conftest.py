"""The broker of the browser tests is that of the stream tests."""

from tests.streams.conftest import broker_address

__all__ = ["broker_address"]
