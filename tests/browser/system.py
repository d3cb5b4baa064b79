"""A whole system for browser tests: two workers as processes, and patients that keep coming."""

import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from user_kit import ensemble

from agents.clients.client import Publisher
from agents.worker_process import command
from settings.loading import load_settings
from streams.broker.cluster_layout import free_ports

PAUSE = 0.1
AT_ONCE = 3
_OTHER = {"benign": "malignant", "malignant": "benign"}


class Worker:
    """A worker process for some roles, with its page at a fixed port."""

    def __init__(self, file: Path, *roles: str) -> None:
        # Below the ports of outgoing connections, so that it is free again after a kill.
        self.port = free_ports(1)[0].client
        sets = (f"worker.web_port={self.port}", f"worker.state={file.parent / roles[0]}")
        self._command = command(file, sets, roles)
        self._log = file.parent / f"{roles[0]}.log"
        self.page = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(120)

    def await_ready(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.page}/readyz"):
                return
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def metrics(self) -> dict[tuple[str, frozenset[str]], float]:
        """Return what /metrics says, by name and the values of the labels but the ensemble's."""
        with urllib.request.urlopen(f"{self.page}/metrics") as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {
                (sample.name, _values(sample.labels)): sample.value
                for family in families
                for sample in family.samples
            }


def _values(labels: dict[str, str]) -> frozenset[str]:
    return frozenset(value for name, value in labels.items() if value and name != "ensemble")


class Patients:
    """Publishes patients in the background, and their labels a little later."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._over = threading.Event()
        self._flow = threading.Lock()
        self._wrong = threading.Event()
        self.ids: list[str] = []
        self.labelled = 0
        self._failed: queue.Queue[BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the block nothing comes: `ids` and `labelled` are all there is."""
        with self._flow:
            yield

    @contextlib.contextmanager
    def wrongly(self) -> Iterator[None]:
        """Inside the block labels are the wrong ones."""
        self._wrong.set()
        try:
            yield
        finally:
            self._wrong.clear()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        if not self._failed.empty():
            raise self._failed.get()

    def _run(self) -> None:
        try:
            asyncio.run(self._publish())
        except BaseException as error:  # noqa: BLE001 - raised again by `end`
            self._failed.put(error)

    async def _publish(self) -> None:
        random = np.random.default_rng(5)
        waiting: list[tuple[str, str]] = []
        async with Publisher(self._file) as publisher:
            while not self._over.is_set():
                await asyncio.sleep(PAUSE)
                if not self._flow.acquire(blocking=False):
                    continue
                try:
                    waiting = await self._send(publisher, random, waiting)
                finally:
                    self._flow.release()

    async def _send(
        self, publisher: Publisher, random: np.random.Generator, waiting: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Send some patients and the labels that are due; return those that still wait."""
        due, waiting = waiting[: -4 * AT_ONCE], waiting[-4 * AT_ONCE :]
        for name, label in due:
            await publisher.label(name, _OTHER[label] if self._wrong.is_set() else label)
            self.labelled += 1
        for _ in range(AT_ONCE):
            patient, label = _patient(random)
            name = await publisher.publish(patient)
            waiting.append((name, label))
            self.ids.append(name)
        return waiting


def _patient(random: np.random.Generator) -> tuple[dict[str, object], str]:
    radius, texture, age = random.random(3) * (30, 40, 100)
    ill = radius / 30 + age / 200 + 0.1 * random.standard_normal() > 0.7
    patient = {"radius": radius, "texture": texture, "age": age, "site": "left"}
    return patient, "malignant" if ill else "benign"


class System:
    """The ensemble and one learner in a worker, the other learner in a worker of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        # Ids of the browser's system never look like those of other tests.
        self.file = ensemble(folder, address, f"browser{os.getpid()}", partitions=1)
        self.settings = load_settings(self.file)
        self.main = Worker(self.file, "ensemble", "local:imaging")
        self.other = Worker(self.file, "local:history")

    @contextlib.contextmanager
    def running(self):
        workers = (self.main, self.other)
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.await_ready()
            self.patients = Patients(self.file)
            try:
                yield self
            finally:
                self.patients.end()
        finally:
            for worker in workers:
                worker.end()
