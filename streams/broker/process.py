"""A node's process: started in its own session, found again through a file."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from settings.errors import BrokerError

POLL_SECONDS = 0.02


class Process:
    """The process recorded in `file`.

    A process id is reused after its process ends, so the id alone proves nothing: the
    process is ours only if its command line names `mark`, a file inside our own data folder.
    """

    def __init__(self, file: Path, mark: Path):
        self.file = file
        self.mark = str(mark)

    def start(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        """Start `command`, detached so that it outlives this process, writing to `log`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
        self._remember(pid)
        self._await_command_line(pid)

    def _await_command_line(self, pid: int) -> None:
        # The system resumes us a moment before the new program's command line can be read.
        try:
            while not psutil.Process(pid).cmdline():
                time.sleep(0.001)
        except psutil.Error:
            return  # it has ended already; its log says why

    def _remember(self, pid: int) -> None:
        # Renamed into place, so that a reader never sees half a number.
        fresh = self.file.with_suffix(".new")
        fresh.write_text(str(pid))
        fresh.replace(self.file)

    def find(self) -> psutil.Process | None:
        """Return the running process, or None."""
        try:
            process = psutil.Process(int(self.file.read_text()))
            return process if self.mark in process.cmdline() else None
        except (FileNotFoundError, ValueError, psutil.Error):
            return None

    def recover(self) -> None:
        """Find a process that was started but not recorded because its starter died in between."""
        if self.file.exists():
            return
        for process in psutil.process_iter(["cmdline"]):
            if self.mark in (process.info["cmdline"] or ()):
                self._remember(process.pid)

    @property
    def alive(self) -> bool:
        """The process is running."""
        return self.find() is not None

    def terminate(self) -> None:
        """Ask the process to stop, if it is running; a frozen one is resumed first."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process, as in a crash, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self.wait(10)

    def pause(self) -> None:
        """Freeze the process (SIGSTOP), as if its machine stalled."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a frozen process."""
        self._signal(signal.SIGCONT)

    def wait(self, timeout: float) -> bool:
        """Wait until the process is gone; False if it still runs after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        # Not psutil's wait: an orphan that is dead but not yet reaped counts as gone.
        while self.alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        self._reap()
        self.file.unlink(missing_ok=True)
        return True

    def _signal(self, number: signal.Signals) -> None:
        process = self.find()
        try:
            if process is not None:
                process.send_signal(number)
        except psutil.NoSuchProcess:
            return
        except psutil.AccessDenied as error:
            raise BrokerError(f"the broker belongs to another user ({process})") from error

    def _reap(self) -> None:
        # A child that died leaves a zombie until its parent, which may be us, reaps it.
        try:
            os.waitpid(int(self.file.read_text()), os.WNOHANG)
        except (ChildProcessError, FileNotFoundError, ValueError):
            return
