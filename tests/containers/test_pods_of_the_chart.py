"""The chart's pods run: 1, 3 and again 1 workers per role, and an update, while patients flow."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.containers.pods import Release
from tests.containers.system import System, until
from tests.deploy.files import DEPLOY, ROOT

# Without the time that engine, images and system take, whichever test comes first.
pytestmark = pytest.mark.timeout(900, func_only=True)
NAME = "pods"
RUN = 569


@pytest.fixture
def release(system: System, tmp_path):
    """Return a release that finds its broker where that of `deploy/compose.yaml` is."""
    network = f"{system.engine.environment['COMPOSE_PROJECT_NAME']}_default"
    release = Release(system.engine, tmp_path / "release", f"hb-{os.getpid()}", network)
    release.folder.mkdir()
    text = (DEPLOY / "ensemble.toml").read_text()
    text = text.replace('name = "wdbc"', f'name = "{NAME}"').replace(
        "partitions = 1", "partitions = 3"
    )
    # Two learners are enough to hand over.
    text = re.sub(r"\[learners\.ll3\].*?(?=\[ensemble\])", "", text, flags=re.DOTALL)
    release.settings.write_text(text)
    try:
        yield release
    finally:
        release.remove()


class Flow:
    """Sends the same patients again and again, each time with other ids, until told to end."""

    def __init__(self, system: System, settings: Path) -> None:
        self._address = f"127.0.0.1:{system.ports['HB_KAFKA_PORT']}"
        self._settings = settings
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self.hb("produce", "--dataset=wdbc", "--rate=30", "--label-delay=500ms")
            self.sent += RUN

    def hb(self, *arguments: str, codes: tuple[int, ...] = (0,)):
        """Run an `hb` command on this machine, and return its report."""
        process = subprocess.run(
            [
                Path(sys.executable).parent / "hb",
                *arguments,
                f"--settings={self._settings}",
                "--json",
            ],
            env={**os.environ, "HB_SET__BROKER__BOOTSTRAP": self._address},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode in codes, (
            arguments,
            process.stdout[-2000:],
            process.stderr[-2000:],
        )
        return json.loads(process.stdout)


def holders(flow: Flow) -> dict[str, set[str]]:
    """Return who holds the partitions of each agent."""
    workers: dict[str, set[str]] = {}
    for task in flow.hb("status", codes=(0, 1)).get("tasks", []):
        workers.setdefault(task["agent"], set()).add(task["holder"])
    return workers


def await_holders(flow: Flow, count: int) -> None:
    def spread() -> bool:
        workers = holders(flow)
        return len(workers) == 3 and all(len(h - {None}) == count for h in workers.values())

    until(spread, lambda: str(holders(flow)))


def test_workers_come_and_go_while_patients_flow(system, release):
    release.install("broker.bootstrap=kafka:9092")
    release.scale(1)
    with Flow(system, release.settings) as flow:
        await_holders(flow, 1)
        release.scale(3)
        await_holders(flow, 3)
        release.scale(1)
        await_holders(flow, 1)
        # An update: other settings, the same volumes.
        text = release.settings.read_text()
        release.settings.write_text(text.replace('fusion_timeout = "5s"', 'fusion_timeout = "6s"'))
        release.install("broker.bootstrap=kafka:9092")
        release.roll()
        until(lambda: flow.sent > 0, lambda: "nothing was sent")
    until(
        lambda: flow.hb("status", codes=(0, 1)).get("labelled") == flow.sent,
        lambda: str(flow.hb("status", codes=(0, 1))),
    )
    figures = flow.hb("audit")["figures"]
    wanted = {"lost": 0, "double": 0, "differing": 0, "patients": flow.sent}
    assert {name: figures[name] for name in wanted} == wanted
    for pod in release.pods.values():
        assert pod.answers("liveness")
