"""The client as a distribution of its own: one import name, few dependencies, small."""

import ast
import asyncio
import importlib.metadata as metadata
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from engine_kit import committed
from packaging.requirements import Requirement
from user_kit import ensemble, write_settings

import agents.clients
import hedged_bandits
from deploy.client.build import ROOT, ROOT_PACKAGE, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDS = {Requirement(text).name for text in PROJECT["dependencies"]}
OPTIONAL = {"aiohttp"}
LIMIT = 60 * 10**6
"""Bytes that an install of the client may take, in all."""
PROGRAM = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(name, name=name)

ABSENT = set(sys.argv[3].split(","))
sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv[1])
from hedged_bandits import Client
with Client(sys.argv[2]) as client:
    print(client.publish({"radius": 14.2, "texture": 20.1, "age": 61, "site": "left"}))
"""
ABSENT = "numpy,learners,settings,streams,agents,schemas,faust,rocksdict,prometheus_client,typer"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    with zipfile.ZipFile(build(folder)) as archive:
        archive.extractall(folder / "lib")
    return folder / "lib"


def test_it_has_one_import_name(installed):
    tops = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {ROOT_PACKAGE}


def test_building_it_again_gives_the_same_bytes(tmp_path):
    assert build(tmp_path / "one").read_bytes() == build(tmp_path / "two").read_bytes()


def test_programs_read_the_same_in_a_clone_and_beside_other_packages(installed):
    offered = "import hedged_bandits; print(hedged_bandits.__file__, *hedged_bandits.__all__)"
    run = subprocess.run(
        [sys.executable, "-c", offered], capture_output=True, text=True, check=True, cwd=installed
    )
    file, *names = run.stdout.split()
    assert Path(file).is_relative_to(installed)
    assert names == list(hedged_bandits.__all__) == list(agents.clients.__all__)
    assert hedged_bandits.Client is agents.clients.Client


def test_it_imports_what_it_declares_and_nothing_else(installed):
    imported = set()
    for file in installed.rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
    beyond = imported - set(sys.stdlib_module_names) - {ROOT_PACKAGE, "pydantic_core"}
    assert beyond - OPTIONAL == NEEDS


def needed(names):
    """Return distributions with all that they need."""
    distributions = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in distributions:
            continue
        distributions[name] = metadata.distribution(name)
        for text in distributions[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name.lower())
    return distributions.values()


def test_it_is_small(installed):
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file())
    for distribution in needed(NEEDS):
        size += sum(Path(file.locate()).stat().st_size for file in distribution.files or ())
    assert size < LIMIT


async def test_it_publishes_where_nothing_else_of_ours_is_installed(
    installed, tmp_path, broker_address, prefix
):
    name = prefix.strip(".")
    file = await asyncio.to_thread(ensemble, tmp_path, broker_address, name)
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM, installed, file, ABSENT],
        capture_output=True,
        text=True,
        cwd=installed,
    )
    assert run.returncode == 0, run.stderr
    patient = run.stdout.strip().encode()
    for learner in ("imaging", "history"):
        records = await committed(broker_address, f"{prefix}instances.{learner}")
        assert [record.key for record in records] == [patient]


def test_a_missing_broker_is_reported_in_one_sentence(installed, tmp_path):
    file = write_settings(tmp_path, "", "client")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, installed, file, ABSENT],
        capture_output=True, text=True, check=False, cwd=installed,
    )  # fmt: skip
    assert run.returncode != 0
    assert "broker.bootstrap is empty" in run.stderr.splitlines()[-1]
