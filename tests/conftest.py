"""What all tests share."""

import os
import shutil
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

# Speed is judged by benchmarks: a busy machine must not fail a property.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI repeats the same examples; runs on your own machine explore new ones.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("HB_REQUIRE_TOOLS") else "default")

# A busy machine may keep `hb status` waiting.
os.environ.setdefault("HB_WAIT", "30")

AT_THE_END = pytest.StashKey[ExitStack]()
"""What is closed when all tests of a process have been run."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[AT_THE_END] = ExitStack()


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[AT_THE_END].close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow files where processes share the work: short ones then fill the gaps."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        files = {item.path: i for i, item in enumerate(items)}
        items.sort(key=lambda item: -files[item.path])


def need_tool(command: str, package: str) -> str:
    """Return the path of `command`; without it skip the test, or fail where tools are demanded."""
    path = shutil.which(command)
    if path is None:
        message = f"{command} is not installed: apt install {package}"
        if os.environ.get("HB_REQUIRE_TOOLS"):
            pytest.fail(message)
        pytest.skip(message)
    return path
