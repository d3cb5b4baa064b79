"""The folder of the demonstration, with its broker, settings, state and logs."""

import contextlib
import shutil
from pathlib import Path

import psutil
import tomlkit
from platformdirs import user_data_path

from agents.log_lines import LogFile
from settings.errors import InputError
from streams.broker import EmbeddedBroker

NAME = "demo"
FAREWELL = "This demo has ended. To keep one running: hb demo --keep"
"""What open console pages say when the workers have stopped."""
_MODE = """\
# The label with most weight behind it decides; learners that err lose weight, and the regret bound
# holds. (`hb init` proposes "stack", which does slightly better but has no regret bound.)
"""


class DemoFolder:
    """The folder of the demonstration, and the process that keeps it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_data_path("hb", appauthor=False) / NAME
        self.settings = self.folder / "ensemble.toml"
        self.log = LogFile(self.folder / "state")
        self._pid = self.folder / "keeper.pid"

    @property
    def broker(self) -> EmbeddedBroker:
        """The broker of this folder, running or not."""
        return EmbeddedBroker(self.folder / "broker")

    def claim(self, keeper: int) -> None:
        """Create the folder, and record the process that keeps it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pid.write_text(f"{keeper}\n")

    @property
    def keeper(self) -> psutil.Process | None:
        """Return the process that keeps a demonstration running here, if there is one."""
        try:
            process = psutil.Process(int(self._pid.read_text()))
            return process if str(self.folder) in process.cmdline() else None
        except (OSError, ValueError, psutil.Error):
            return None

    def need_free(self) -> None:
        """Raise InputError if a demonstration is running here; clean up after a dead one."""
        if self.keeper is not None:
            raise InputError(
                f"a demo is already running, with {self.settings}; to stop it: hb demo --stop"
            )
        self.clear()

    def clear(self) -> None:
        """Stop the broker and delete everything."""
        if self.folder.exists():
            self.broker.destroy()
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.folder)

    def write_settings(self, proposed: str) -> None:
        """Write the settings as `hb init` proposes them, with a fusion mode that has a bound.

        They lead to the folder's broker, which is running.
        """
        document = tomlkit.parse(proposed)
        document["name"] = NAME
        ensemble = tomlkit.table()
        for line in _MODE.splitlines():
            ensemble.add(tomlkit.comment(line.removeprefix("# ")))
        ensemble.add("mode", "wm")
        ensemble.add(tomlkit.comment("Longer than a worker that was killed needs to come back."))
        ensemble.add("fusion_timeout", "5m")
        ensemble.add("label_ttl", "30d")
        ensemble.add(tomlkit.nl())
        document["ensemble"] = ensemble
        broker = self.broker.settings()
        document["broker"] = broker.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        document["worker"]["state"] = "state"
        document["worker"]["farewell"] = FAREWELL
        self.settings.write_text(tomlkit.dumps(document))
