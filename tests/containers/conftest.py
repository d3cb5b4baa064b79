"""One engine, its images and one running system for all tests of containers."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker.jars import cache_folder
from tests.containers.engine import Engine, running_engine
from tests.containers.images import make_images
from tests.containers.system import System


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that has every image."""
    with running_engine(cache_folder() / "compose") as engine:
        make_images(engine)
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
