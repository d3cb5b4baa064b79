import subprocess
import sys
from pathlib import Path

import pytest

from deploy.client.build import build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The product as it is published."""
    out = tmp_path_factory.mktemp("dist")
    hatchling = Path(sys.executable).parent / "hatchling"
    subprocess.run([hatchling, "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def client_wheel(tmp_path_factory):
    """The client as a distribution of its own."""
    return build(tmp_path_factory.mktemp("client"))
