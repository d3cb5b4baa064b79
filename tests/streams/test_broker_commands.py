"""`hb broker`, as a user runs it."""

import os
import re
import select
import signal
import subprocess
import sys
import time
import tomllib

import pytest
from user_kit import HB

from streams.broker import EmbeddedBroker
from tests.cli_runs import Hb


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broker") / "data"
    yield folder
    EmbeddedBroker(folder).destroy()


@pytest.fixture
def hb(monkeypatch, capsys, data):
    monkeypatch.setenv("COLUMNS", "200")
    run = Hb(monkeypatch, capsys)
    return lambda command, *arguments: run("broker", command, "--data", data, *arguments)


def test_a_life(hb, data):
    nothing = hb("status", "--json")
    assert (nothing.code, nothing.json["running"], nothing.json["nodes"]) == (1, False, [])
    assert hb("down").out == "the broker was not running\n"

    up = hb("up", "--json")
    assert up.code == 0
    address = up.json["address"]
    assert up.json["secure"] is False
    assert up.json["nodes"][0]["memory_mb"] > 0
    assert tomllib.loads(up.json["settings"][0]) == {"broker": {"bootstrap": address}}
    assert f"is up at {address}" in hb("up").out

    status = hb("status")
    assert status.code == 0
    assert f"up and answering at {address}" in status.out
    assert len(hb("logs", "-n", "3").out.splitlines()) == 3
    assert "STARTED" in hb("logs", "-n", "1000").out
    assert hb("logs", "--node", "2").code == 3

    refused = hb("up", "--foreground")
    assert refused.code == 4
    assert "is already running" in refused.err
    assert hb("up", "--brokers", "3").code == 4

    assert hb("down").out == "stopped\n"
    assert hb("status").code == 1
    assert hb("down", "--json").json == {"was_running": False, "killed": []}


def test_resetting_asks_first(hb, data):
    hb("up")
    asked = hb("reset")
    assert asked.code == 3
    assert "add --yes to confirm" in asked.err
    assert hb("status").code == 0
    assert hb("reset", "--yes", "--json").json == {"deleted": True, "data": str(data)}
    assert not data.exists()
    assert hb("reset", "--yes").out == "there was nothing to delete\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_stops_with_its_command(data, number):
    command = [*HB, "broker", "up", "--foreground", "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output = ""
    while "Ctrl-C to stop" not in output:
        assert select.select([process.stderr], [], [], 120)[0]
        line = process.stderr.readline()
        assert line, "it ended too early"
        output += line
    broker = EmbeddedBroker(data)
    assert broker.running
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "is up at" in out
    assert "stopped" in err
    assert not broker.running
    assert "shut down completed" in broker.nodes[0].log.read_text()


def test_an_interrupted_start_leaves_nothing_running(data):
    broker = EmbeddedBroker(data)
    process = subprocess.Popen([*HB, "broker", "up", "--data", str(data)], stdout=subprocess.PIPE)
    while not broker.running:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not broker.running


def test_without_an_address_the_embedded_broker_is_meant(tmp_path):
    """In a process of its own: where the user's data folder is, is the environment's to say."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    code = (
        "from streams.broker import EmbeddedBroker;"
        "from streams.kafka.security import client_arguments;"
        "from settings.sections.broker import BrokerSettings;"
        "broker = EmbeddedBroker(); address = broker.up();"
        "print(client_arguments(BrokerSettings())['bootstrap_servers'] == [address]);"
        "broker.destroy()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == "True\n"
    assert not list((tmp_path / "hb").rglob("node-*"))


def test_the_help_names_every_command(hb, monkeypatch, capsys):
    text = Hb(monkeypatch, capsys)("broker", "--help").out
    for command in ("up", "down", "status", "logs", "reset"):
        assert re.search(rf"\b{command}\b", text)
