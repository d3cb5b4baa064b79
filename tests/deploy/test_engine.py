"""The engine that tests of containers start ends with them, however they end."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.deploy.files import ROOT
from tests.streams.docker_broker import docker_answers

DAEMON = """#!/bin/sh
echo $$ >{pid}
exec sleep 600
"""
TESTS = """
import os
import sys
from pathlib import Path
from tests.containers import engine

os.geteuid = lambda: 0
with engine.running_engine(Path({tools!r})) as running:
    socket = Path(running.environment["DOCKER_HOST"].removeprefix("unix://"))
    print(socket.parent, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def tools(tmp_path):
    """Stand-ins for the programs of an engine, and the file where the daemon's id is."""
    plugin = tmp_path / "usr/libexec/docker/cli-plugins/docker-compose"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    for name in ("docker", "containerd", "runc", "dockerd"):
        text = DAEMON.format(pid=tmp_path / "pid") if name == "dockerd" else "#!/bin/sh\n"
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_an_engine_ends_with_tests_that_are_told_to_end(tools):
    process = subprocess.Popen(
        [sys.executable, "-c", TESTS.format(tools=str(tools))],
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "DOCKER_HOST": f"unix://{tools}/nobody.sock",
        },
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = Path(process.stdout.readline().strip())
    daemon = int((tools / "pid").read_text())
    assert folder.is_dir()
    process.terminate()
    _, errors = process.communicate()
    assert "KeyboardInterrupt" in errors
    assert not folder.exists()
    assert not Path("/proc", str(daemon)).exists()


@pytest.mark.parametrize(("answer", "answers"), [(b"200 OK", True), (b"400 Bad Request", False)])
@pytest.mark.parametrize("scheme", ["unix", "tcp"])
def test_an_engine_is_found_where_the_variable_says(monkeypatch, tmp_path, scheme, answer, answers):
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    with socket.socket(family) as engine:
        engine.bind(str(tmp_path / "e") if scheme == "unix" else ("127.0.0.1", 0))
        engine.listen()
        engine.settimeout(10)
        name = engine.getsockname()
        address = name if scheme == "unix" else f"127.0.0.1:{name[1]}"
        monkeypatch.setenv("DOCKER_HOST", f"{scheme}://{address}")
        thread = threading.Thread(target=pong, args=(engine, answer), daemon=True)
        thread.start()
        assert docker_answers() == answers
        thread.join()
    assert not docker_answers(), "nobody is there any more"


def pong(engine, answer):
    connection, _ = engine.accept()
    with connection:
        assert connection.recv(100).startswith(b"GET /_ping")
        connection.sendall(b"HTTP/1.0 " + answer + b"\r\n\r\n")
