"""The system of `deploy/compose.yaml` as a person runs it: up, produce, status, audit, down."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.containers.engine import Engine
from tests.deploy.files import DEPLOY, ROOT, read_yaml

FILE = DEPLOY / "compose.yaml"
SERVICES = read_yaml(FILE)["services"]
RUNNING = [name for name in SERVICES if name not in ("grafana", "topics")]
"""What is to be healthy. Grafana's image cannot be made from packages; `topics` ends."""
PORTS = ("HB_PORT", "HB_KAFKA_PORT", "HB_PROMETHEUS_PORT")
PATIENCE = 240.0


class System:
    """A running compose project with ports and a name of its own."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        variables = {name: str(port) for name, port in self.ports.items()}
        variables["COMPOSE_PROJECT_NAME"] = f"hb-test-{os.getpid()}"
        self.engine = Engine({**engine.environment, **variables}, engine.compose, engine.own)

    def compose(self, *arguments: str) -> str:
        """Run a compose command on the file."""
        return self.engine.compose_run("--file", FILE, *arguments)

    def up(self) -> None:
        """Start everything and wait until it is healthy."""
        self.compose("up", "--detach", "--no-build", "topics", *RUNNING)
        self.await_health()

    def down(self, *, volumes: bool = False) -> None:
        """Stop everything; forget everything with `volumes`."""
        self.compose("down", "--timeout=30", *(["--volumes"] if volumes else []))

    def states(self) -> dict[str, dict[str, Any]]:
        """Return what the engine says of each container, by service."""
        names = self.compose("ps", "--all", "--quiet").split()
        inspected = json.loads(self.engine.docker("inspect", *names)) if names else []
        service = "com.docker.compose.service"
        return {
            container["Config"]["Labels"][service]: container["State"] for container in inspected
        }

    def await_health(self) -> None:
        """Wait until every service that stays is healthy."""

        def healthy() -> bool:
            states = self.states()
            return all(
                states.get(name, {}).get("Health", {}).get("Status") == "healthy"
                for name in RUNNING
            )

        until(healthy, lambda: str({k: v["Status"] for k, v in self.states().items()}))

    def kill(self, service: str) -> None:
        """Kill the first process of a container as the kernel would, and wait for its restart."""
        before = self.states()[service]
        os.kill(before["Pid"], signal.SIGKILL)
        until(
            lambda: self.states()[service]["StartedAt"] != before["StartedAt"],
            lambda: f"{service} is not restarted",
        )

    def hb(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Run an `hb` command on this machine against the system, and return its report."""
        address = f"127.0.0.1:{self.ports['HB_KAFKA_PORT']}"
        environment = {**os.environ, "HB_SET__BROKER__BOOTSTRAP": address}
        hb = Path(sys.executable).parent / "hb"
        command = [hb, *arguments, "--settings", DEPLOY / "ensemble.toml", "--json"]
        process = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert process.returncode in codes, (
            arguments,
            process.stdout[-2000:],
            process.stderr[-2000:],
        )
        return json.loads(process.stdout)

    def get(self, port: str, page: str) -> bytes:
        """Return a page that the system serves on this machine."""
        with urlopen(f"http://127.0.0.1:{self.ports[port]}{page}", timeout=10) as answer:
            content: bytes = answer.read()
        return content


def free_ports(count: int) -> list[int]:
    """Return ports that are free."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return numbers


def until(condition: Any, story: Any, patience: float = PATIENCE) -> None:
    """Wait for a condition; fail with the story."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(story())
        time.sleep(0.5)
