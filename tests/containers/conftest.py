"""One engine, its images and one running system for all tests of containers."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker.jars import cache_folder
from tests.containers.engine import Engine, running_engine
from tests.containers.images import PYTHON, stand_ins
from tests.containers.system import WORKER, System
from tests.deploy.files import ROOT


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that has every image."""
    with running_engine(cache_folder() / "compose") as engine:
        if engine.own:
            stand_ins(engine)
            build = ["build", "--network=host", f"--build-arg=PYTHON={PYTHON}", f"--tag={WORKER}"]
            engine.docker(*build, "--file", ROOT / "deploy/Dockerfile", ROOT)
        yield engine


@pytest.fixture(scope="session")
def system(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """What `deploy/compose.yaml` describes, without Grafana."""
    system = System(engine, tmp_path_factory.mktemp("compose"))
    try:
        system.up()
        yield system
    finally:
        system.down(volumes=True)
        if engine.own:
            shutil.rmtree(Path(system.folder), ignore_errors=True)
