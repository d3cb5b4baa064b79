"""One Kafka node: broker and controller in one process (KRaft, combined mode)."""

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from streams.broker.jars import class_path
from streams.broker.java import find_java
from streams.broker.plan import Plan
from streams.broker.process import Process
from streams.broker.properties import server_properties, write_properties
from streams.errors import BrokerError

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
# Kafka says this once the broker is registered, has caught up with the metadata and takes requests.
_READY = "Transition from STARTING to STARTED (kafka.server.BrokerServer)"
_READY_LINE = re.compile(r"\[BrokerServer id=\d+\] Transition from STARTING to STARTED")
_TELLING = re.compile(r"\b(ERROR|FATAL)\b|Exception|Error:")
_LOG = "org.slf4j.simpleLogger"
_JAVA_OPTIONS = [
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    f"-D{_LOG}.logFile=System.out",
    f"-D{_LOG}.showDateTime=true",
    f"-D{_LOG}.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    f"-D{_LOG}.showThreadName=false",
    # Hundreds of lines with every setting, at each start.
    f"-D{_LOG}.log.org.apache.kafka.common.config.AbstractConfig=warn",
]


class Node:
    """Node `number` of a cluster, in its own folder; may be stopped, killed and started singly."""

    def __init__(self, folder: Path, plan: Plan, number: int, changes: Mapping[str, str]):
        self.folder = folder
        self.plan = plan
        self.number = number
        self.changes = changes
        self.log = folder / "log.txt"
        self.properties = folder / "server.properties"
        self.process = Process(folder / "pid", self.properties)

    @property
    def alive(self) -> bool:
        """Its process runs."""
        return self.process.alive

    def start(self, timeout: float = START_SECONDS) -> None:
        """Start it, unless it runs, and wait until it takes requests."""
        self.launch()
        self.await_ready(timeout)

    def launch(self) -> None:
        """Start it, unless it runs, without waiting."""
        if self.alive:
            return
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_properties(
            self.properties, server_properties(self.plan, self.number, data, self.changes)
        )
        if not (data / "meta.properties").is_file():
            self._format()
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".old.txt"))
        self.process.start(_java("kafka.Kafka", str(self.properties)), self.log)

    def await_ready(self, timeout: float = START_SECONDS) -> None:
        """Wait until it takes requests."""
        deadline = time.monotonic() + timeout
        while not self._says_ready():
            if not self.alive:
                raise BrokerError(f"the broker did not come up: {self.last_words()}")
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"the broker did not come up within {timeout:.0f} s: {self.last_words()}"
                )
            time.sleep(POLL_SECONDS)

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """Stop it cleanly and wait; False if it had to be killed after `timeout` seconds."""
        self.process.terminate()
        if self.process.wait(timeout):
            return True
        self.process.kill()
        return False

    def kill(self) -> None:
        """End it at once (kill -9), as a crash would."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP)."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.process.resume()

    def last_words(self) -> str:
        """Return the line of its log that says most about why it ended."""
        lines = [line for line in self._read_log().splitlines() if line.strip()]
        telling = [line for line in lines if _TELLING.search(line)]
        return (telling or lines or ["its log is empty"])[-1].strip()

    def _says_ready(self) -> bool:
        return _READY_LINE.search(self._read_log()) is not None

    def _read_log(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _format(self) -> None:
        arguments = ["format", "--ignore-formatted", "-t", self.plan.cluster]
        command = _java("kafka.tools.StorageTool", *arguments, "-c", str(self.properties))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"the broker's folder cannot be prepared: {done.stderr.strip()}")


def _java(main: str, *arguments: str) -> list[str]:
    return [str(find_java().program), *_JAVA_OPTIONS, "-cp", class_path(), main, *arguments]
