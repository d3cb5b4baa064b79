"""The built wheel holds all packages and runs without the source tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "schemas",
    "learners",
    "settings",
    "streams",
    "agents",
    "audit",
    "experiments",
    "bench",
    "cli",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    hatchling = Path(sys.executable).parent / "hatchling"
    subprocess.run([hatchling, "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    return next(out.glob("*.whl"))


def test_it_holds_every_module_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == PACKAGES
    modules = {str(p.relative_to(ROOT)) for top in PACKAGES for p in (ROOT / top).rglob("*.py")}
    assert modules <= set(names)
    assert any(name.endswith("LICENSE") for name in names)
    page = ROOT / "agents/monitor/console/static"
    assert {str(file.relative_to(ROOT)) for file in page.iterdir()} <= set(names)


def test_hb_runs_from_the_wheel_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import cli, cli.main; cli.main.main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path), "--version"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hb ")
