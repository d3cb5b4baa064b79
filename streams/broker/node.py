"""One Kafka node: broker and controller in one process (KRaft, combined mode)."""

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from settings.errors import BrokerError
from streams.broker.certificates import SecretFiles
from streams.broker.cluster_layout import Plan
from streams.broker.jvm import java_command, java_environment
from streams.broker.process import Process
from streams.broker.properties import server_properties, write_properties

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
# Kafka logs this once the broker is registered, has caught up with the metadata and is serving.
_READY = re.compile(rb"\[BrokerServer id=\d+\] Transition from STARTING to STARTED")
_TELLING = re.compile(r"\b(ERROR|FATAL)\b|Exception|Error:")
_PORT_TAKEN = "Address already in use"


_PROPERTIES = "server.properties"


def node_process(folder: Path) -> Process:
    """Return the process of the node in a folder."""
    return Process(folder / "pid", folder / _PROPERTIES)


class PortTakenError(BrokerError):
    """Another program took a port between its choice and the start."""


class Node:
    """Node `number` of the cluster in folder `root`; can be stopped, killed and started alone.

    It keeps nothing in memory: several objects, in any process, can stand for the same node.
    `changes` are further properties for the server, `record` an archive of its classes to write;
    one that is `short_lived` starts quickly rather than encrypts quickly.
    """

    def __init__(
        self,
        root: Path,
        plan: Plan,
        number: int,
        changes: Mapping[str, str] | None = None,
        *,
        record: Path | None = None,
        short_lived: bool = False,
    ):
        self.root = root
        self.plan = plan
        self.number = number
        self.changes = changes or {}
        self.record = record
        self.short_lived = short_lived
        self.folder = root / f"node-{number}"
        self.log = self.folder / "log.txt"
        self.properties = self.folder / _PROPERTIES
        self.process = node_process(self.folder)

    @property
    def alive(self) -> bool:
        """Its process is running."""
        return self.process.alive

    @property
    def ready(self) -> bool:
        """It has come up since its last start, and accepts requests if it is alive."""
        return self.log.exists() and _READY.search(self.log.read_bytes()) is not None

    def start(self, timeout: float = START_SECONDS) -> None:
        """Start it, unless it is running, and wait until it accepts requests."""
        self.launch()
        self.await_ready(timeout)

    def launch(self) -> None:
        """Start it, unless it is running, without waiting."""
        if self.alive:
            return
        (self.folder / "data").mkdir(parents=True, exist_ok=True, mode=0o700)
        properties = server_properties(self.plan, self.number, self.root)
        write_properties(self.properties, {**properties, **self.changes})
        if not (self.folder / "data" / "meta.properties").is_file():
            self._format()
        if self.log.exists():
            self.log.replace(self.folder / "log.old.txt")
        command = java_command(
            "kafka.Kafka",
            str(self.properties),
            kafka=self.plan.kafka,
            folder=self.folder,
            record=self.record,
            encrypts=self.plan.secure and not self.short_lived,
        )
        self.process.start(command, java_environment(), self.log)

    def await_ready(self, timeout: float = START_SECONDS) -> None:
        """Wait until it accepts requests."""
        deadline = time.monotonic() + timeout
        while not self.ready:
            if not self.alive:
                raise self._explain("the broker did not start")
            if time.monotonic() > deadline:
                raise self._explain(f"the broker did not start within {timeout:.0f} s")
            time.sleep(POLL_SECONDS)

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """Stop it cleanly and wait; False if it had to be killed after `timeout` seconds."""
        self.process.terminate()
        if self.process.wait(timeout):
            return True
        self.process.kill()
        return False

    def kill(self) -> None:
        """Kill it (kill -9), as in a crash."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP), as if its machine stalled."""
        self.process.pause()

    def resume(self) -> None:
        """Continue after `pause`."""
        self.process.resume()

    def _explain(self, summary: str) -> BrokerError:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        port_taken = any(_PORT_TAKEN in line for line in lines)
        telling = [line for line in lines if _TELLING.search(line)]
        reason = next((line.strip() for line in reversed(telling or lines) if line.strip()), "")
        error = PortTakenError if port_taken else BrokerError
        return error(f"{summary}: {reason or 'it said nothing'} (log: {self.log})")

    def _format(self) -> None:
        arguments = ["format", "--ignore-formatted", "-t", self.plan.cluster]
        arguments += ["-c", str(self.properties)]
        files = SecretFiles(self.root / "secrets")
        for user in self.plan.users:
            password = files.password(user).read_text()
            arguments += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        # A file, because every user of the machine can read command lines.
        with NamedTemporaryFile("w", dir=self.folder) as file:
            file.write("\n".join(arguments) + "\n")
            file.flush()
            command = java_command(
                "kafka.tools.StorageTool",
                f"@{file.name}",
                kafka=self.plan.kafka,
                folder=self.folder,
            )
            process = subprocess.run(  # noqa: S603 - our own pinned program and a file that we wrote
                command, env=java_environment(), capture_output=True, text=True, check=False
            )
        if process.returncode:
            output = process.stderr.strip() or process.stdout.strip()
            raise BrokerError(f"cannot prepare the broker's folder: {output.splitlines()[-1]}")
