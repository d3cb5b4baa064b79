"""`hb up` and its workers live and die together, whichever of them is killed and however."""

import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from user_kit import HB, ensemble

from agents.supervisor import Supervisor
from agents.worker_pages import WorkerPage, worker_pages

WITHIN = 120.0
AGENTS = {"local.imaging", "local.history", "ensemble"}


class Up:
    """A running `hb up`, its workers and what it has printed."""

    def __init__(self, *files: Path) -> None:
        self._state = files[0].parent / "state"
        self.process = subprocess.Popen(
            [*HB, "up", *map(str, files)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=files[0].parent,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._workers: list[psutil.Process] = []

    def _read(self) -> None:
        self.lines.extend(self.process.stdout)

    def pages(self) -> list[WorkerPage]:
        return worker_pages(self._state)

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def workers(self) -> list[psutil.Process]:
        """Return the workers that run, also after their supervisor has died."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._workers = psutil.Process(self.process.pid).children() or self._workers
        return [worker for worker in self._workers if alive(worker)]

    def await_running(self) -> list[psutil.Process]:
        until(lambda: {agent for page in self.pages() for agent in page.agents} == AGENTS, self)
        until(lambda: len(self.workers()) == len(AGENTS), self)
        return self.workers()

    def end(self) -> None:
        workers = self.workers()
        for process in (self.process, *workers):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(30)
        self._reader.join(30)
        self.process.stdout.close()


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(holds, up: Up) -> None:
    deadline = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < deadline, up.output
        time.sleep(0.1)


@contextlib.contextmanager
def running(file: Path) -> Iterator[Up]:
    up = Up(file)
    try:
        yield up
    finally:
        up.end()


@pytest.fixture
def file(tmp_path, broker_address, prefix):
    return ensemble(tmp_path, broker_address, prefix.strip("."), partitions=1)


def test_workers_end_with_their_supervisor_and_a_second_one_is_refused(file):
    with running(file) as first:
        workers = first.await_running()
        second = subprocess.run(
            [*HB, "up", "--settings", str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
        )
        assert second.returncode == 3
        assert f"process {first.process.pid} already runs the workers" in second.stderr
        assert [worker for worker in workers if not alive(worker)] == []
        first.process.kill()
        until(lambda: not first.workers(), first)
    with running(file) as again:
        again.await_running()
        again.process.send_signal(signal.SIGTERM)
        assert again.process.wait(60) == 0
        assert hb(file, "console").returncode == 3, "nobody serves it any more"
        assert again.workers() == []
        assert again.pages() == []
        assert "console: http://127.0.0.1:" in again.output


def hb(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*HB, *arguments, "--settings", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN)


def test_what_runs_is_logged_can_be_looked_at_and_stopped_from_elsewhere(file):
    assert "hb up writes it" in hb(file, "logs").stderr
    assert hb(file, "down").stdout.startswith("workers: hb up is not running here")
    with running(file) as up:
        up.await_running()
        page = hb(file, "console", "--address").stdout.strip()
        assert page in {address.address for address in up.pages()}
        output = hb(file, "logs", "--role", "ensemble", "--log-format", "json").stdout
        lines = [orjson.loads(line) for line in output.splitlines()]
        assert {line["worker"] for line in lines} == {"ensemble"}
        assert any(line["text"].startswith("worker runs ensemble") for line in lines)
        assert not any("Starting..." in line["text"] for line in lines), "Faust's own chatter"
        stopped = hb(file, "down", "--json")
        assert orjson.loads(stopped.stdout) == {"workers_stopped": True, "broker_stopped": False}
        assert up.process.wait(60) == 0
        assert up.workers() == []
    newest = hb(file, "logs", "-n", "1").stdout
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+ +[\w:]+ ", newest), newest


POISONED = """
from agents.worker_process import main
from streams.faust.fetching import Fetching

async def fail(*_arguments, **_options):
    raise ValueError("patient p17")

Fetching._fetch_records = fail
main()
"""


def test_a_worker_of_which_a_part_crashes_says_why_and_is_restarted(file):
    lines = []
    poisoned = [sys.executable, "-c", POISONED, "--settings", str(file), "--supervised"]
    deadline = time.monotonic() + WITHIN
    with Supervisor(
        ["all"], lambda _: poisoned, lambda line: lines.append(line.text)
    ) as supervisor:
        while supervisor.children[0].restarts < 1:
            assert time.monotonic() < deadline, lines
            time.sleep(0.1)
    text = "\n".join(lines)
    assert "hb: the worker crashed: ValueError at " in text
    assert "ended (exit code 5); restarting in 0.5 s" in text
    assert "p17" not in text
