"""The first contact: patience where it helps, one sentence where it does not."""

import asyncio
import logging
import socket
import threading

import pytest

from settings.errors import BrokerError
from settings.sections.broker import BrokerSettings
from streams.kafka.connection import admin_client, await_broker, quiet_client
from streams.kafka.security import client_arguments, located


def test_the_address_is_a_list(broker):
    assert client_arguments(broker)["bootstrap_servers"] == [broker.bootstrap]
    assert client_arguments(broker)["request_timeout_ms"] == 30_000


async def test_an_answer_is_enough(broker):
    await await_broker(broker, 5)


async def test_one_of_several_is_enough(broker):
    await await_broker(BrokerSettings(bootstrap=f"127.0.0.1:1,{broker.bootstrap}"), 5)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "nothing listens there"),
        ("no-such-host.invalid:9092", "host name is not known"),
    ],
)
async def test_a_wrong_address_is_reported(address, message):
    with pytest.raises(BrokerError, match=f"cannot connect to {address} within 0.3 s: .*{message}"):
        await await_broker(BrokerSettings(bootstrap=address), 0.3)


async def test_something_other_than_kafka_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = BrokerSettings(bootstrap=f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(BrokerError, match="does not answer as Kafka does"):
            await await_broker(settings, 0.5)


async def test_errors_inside_are_explained(broker):
    with pytest.raises(BrokerError, match="cannot be used: it does not answer"):
        async with admin_client(broker):
            raise TimeoutError


def test_a_missing_embedded_broker_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(BrokerError, match="not running; start it with: hb broker up"):
        located(BrokerSettings())


def test_the_client_is_quiet_unless_asked(monkeypatch):
    logger = logging.getLogger("aiokafka")
    before = logger.level
    try:
        logger.setLevel(logging.NOTSET)
        quiet_client()
        assert logger.level == logging.CRITICAL
        logger.setLevel(logging.DEBUG)
        quiet_client()
        assert logger.level == logging.DEBUG
    finally:
        logger.setLevel(before)


def test_it_says_nothing_else(broker, capfd):
    def run():
        with pytest.raises(BrokerError):
            asyncio.run(await_broker(BrokerSettings(bootstrap="127.0.0.1:1"), 0.3))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert capfd.readouterr() == ("", "")
