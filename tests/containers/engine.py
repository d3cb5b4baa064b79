"""A container engine: the machine's own if one answers, else one that is started here.

An engine of ours has its own socket and folders, runs as root, and ends with the tests. No registry
is asked for anything: `tests/containers/images.py` makes stand-ins for the images.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import need_tool
from tests.streams.docker_broker import docker_answers

START = 60.0


@dataclass(frozen=True)
class Engine:
    """How to reach an engine; `own` tells whether it was started here and knows no registry."""

    environment: dict[str, str] = field(repr=False)
    compose: list[str]
    own: bool

    def docker(
        self, *arguments: str | Path, check: bool = True, merge: bool = False, **options: object
    ) -> str:
        """Run a docker command and return what it prints; fail with its own words."""
        return self._run(["docker", *map(str, arguments)], check=check, merge=merge, **options)

    def compose_run(self, *arguments: str | Path) -> str:
        """Run a compose command."""
        return self._run([*self.compose, *map(str, arguments)])

    def _run(
        self, command: list[str], *, check: bool = True, merge: bool = False, **options: object
    ) -> str:
        process = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, **options
        )
        if check and process.returncode:
            pytest.fail(f"{' '.join(command)}: {process.stdout[-2000:]}{process.stderr[-2000:]}")
        return process.stdout + (process.stderr if merge else "")

    def has(self, image: str) -> bool:
        """Tell whether the engine holds an image."""
        return bool(self.docker("image", "ls", "--quiet", image).strip())


@contextmanager
def running_engine(tools: Path) -> Iterator[Engine]:
    """Give the machine's engine, or start one; `tools` keeps what is fetched for it."""
    # Tests that are told to end tidy up as after Ctrl-C: containers and engines would go on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if docker_answers():
        need_tool("docker", "docker.io")
        yield Engine(dict(os.environ), ["docker", "compose"], own=False)
        return
    for command, package in (
        ("dockerd", "docker.io"),
        ("runc", "runc"),
        ("containerd", "containerd"),
    ):
        need_tool(command, package)
    if os.geteuid():
        unavailable("no container engine answers, and only root can start one")
    # Sockets have short paths, so not in pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="hb-engine-"))
    try:
        with _dockerd(folder) as environment:
            yield Engine(environment, [str(compose_plugin(tools)), "--ansi=never"], own=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unavailable(reason: str) -> None:
    """Skip the test, or fail where everything is demanded."""
    if os.environ.get("HB_REQUIRE_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _dockerd(folder: Path) -> Iterator[dict[str, str]]:
    socket = f"unix://{folder}/docker.sock"
    command = [
        "dockerd",
        f"--host={socket}",
        f"--data-root={folder}/data",
        f"--exec-root={folder}/exec",
        f"--pidfile={folder}/pid",
    ]
    environment = {**os.environ, "DOCKER_HOST": socket}
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _await_answer(daemon, environment, folder / "log")
            yield environment
        finally:
            daemon.terminate()
            daemon.wait()
            # It leaves this behind, and then its folder cannot be removed.
            network = folder / "exec/netns/default"
            subprocess.run(["umount", network], capture_output=True, check=False)


def _await_answer(daemon: subprocess.Popen[bytes], environment: dict[str, str], log: Path) -> None:
    deadline = time.monotonic() + START
    while subprocess.run(
        ["docker", "info"], env=environment, capture_output=True, check=False
    ).returncode:
        if daemon.poll() is not None or time.monotonic() > deadline:
            unavailable(f"dockerd does not start here: {log.read_text()[-500:]}")
        time.sleep(0.2)


def compose_plugin(tools: Path) -> Path:
    """Return Compose v2: this machine's, or the package of a later Debian release, unpacked."""
    for folder in ("/usr/libexec/docker/cli-plugins", "/usr/local/lib/docker/cli-plugins"):
        if (plugin := Path(folder, "docker-compose")).is_file():
            return plugin
    plugin = tools / "usr/libexec/docker/cli-plugins/docker-compose"
    if not plugin.is_file():
        tools.mkdir(parents=True, exist_ok=True)
        (package,) = download("trixie", "docker-compose", tools)
        subprocess.run(["dpkg", "-x", package, tools], check=True)
    return plugin


def debian_site() -> str:
    """Return where this machine gets its Debian packages from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    sites = [site for site in dict.fromkeys(sites) if "security" not in site]
    if not sites:
        unavailable("apt knows no source of packages: run apt-get update")
    return sites[0]


def download(release: str, package: str, folder: Path) -> list[Path]:
    """Fetch a package of another release with apt, leaving the machine's own lists alone."""
    lists = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (lists / part).mkdir(parents=True, exist_ok=True)
    (lists / "sources.list").write_text(f"deb {debian_site()} {release} main\n")
    options = [
        f"-oDir::Etc::sourcelist={lists}/sources.list",
        "-oDir::Etc::sourceparts=/dev/null",
        f"-oDir::State::lists={lists}/lists",
        f"-oDir::Cache={lists}/cache",
    ]
    for verb in (["update"], ["download", package]):
        subprocess.run(["apt-get", "-qq", *options, *verb], cwd=folder, check=True)
    return sorted(folder.glob(f"{package}_*.deb"))
