"""The built wheel holds the product, nothing else, and runs without the source tree."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from sysconfig import get_path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = {"schemas", "learners", "settings", "streams", "agents", "audit", "cli", "hedged_bandits"}
ALONE = """
import sys
sys.path[:] = [sys.argv.pop(1), *(p for p in sys.path if not p.endswith("site-packages"))]
sys.path.append(sys.argv.pop(1))
from cli.main import main
main()
"""
"""Runs `hb` from a folder with the packages of this Python, but without its editable install: the
`.pth` files of a folder that is appended later are not read."""


def test_it_holds_every_module_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == PRODUCT
    modules = {str(p.relative_to(ROOT)) for top in PRODUCT for p in (ROOT / top).rglob("*.py")}
    assert modules <= set(names)
    assert any(name.endswith("LICENSE") for name in names)
    assert {f"{top}/py.typed" for top in PRODUCT} <= set(names)
    page = ROOT / "agents/monitor/console/static"
    assert {str(file.relative_to(ROOT)) for file in page.iterdir()} <= set(names)
    runbook = zipfile.ZipFile(wheel).read("agents/monitor/runbook.md")
    assert runbook == (ROOT / "docs/runbook.md").read_bytes()


@pytest.mark.parametrize("built", ["wheel", "client_wheel"])
def test_a_package_index_is_told_what_it_is(built, request):
    with zipfile.ZipFile(request.getfixturevalue(built)) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(name))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert told["Version"] == project["version"]
    assert told["Author"] == project["authors"][0]["name"]
    assert told["License-Expression"] == project["license"]
    assert told.get_all("Classifier") == project["classifiers"]
    assert "Typing :: Typed" in project["classifiers"]
    assert told["Keywords"] == ",".join(project["keywords"])
    assert told["Description-Content-Type"] == "text/markdown"
    assert "# Hedged Bandits" in told.get_payload()
    assert told.get_all("Project-URL") is None, "there is no page to point to"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return a function that runs `hb` as the wheel alone provides it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)

    def hb(*arguments):
        code = [sys.executable, "-I", "-S", "-c", ALONE, str(folder), get_path("platlib")]
        return subprocess.run(
            [*code, *arguments], capture_output=True, text=True, cwd=folder, check=False
        )

    return hb


def test_hb_runs_from_the_wheel_alone(installed):
    version = installed("--version")
    assert version.returncode == 0, version.stderr
    assert version.stdout.startswith("hb ")
    reference = installed("settings", "reference")
    assert reference.returncode == 0, reference.stderr


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (["bench", "core"], "bench"),
        (["experiments", "list"], "experiments"),
        (["experiments", "table1"], "experiments"),
        (["test"], "tests"),
    ],
)
def test_what_is_only_in_a_clone_says_so_in_one_sentence(installed, command, missing):
    process = installed(*command)
    assert process.returncode == 3
    assert process.stderr == (
        f"hb: the installed hb does not include its {missing}; run ./hb {command[0]} in a clone of"
        " its repository\n"
    )


def test_the_source_archive_builds_the_same_wheel(wheel, tmp_path):
    hatchling = Path(sys.executable).parent / "hatchling"
    subprocess.run([hatchling, "build", "-t", "sdist", "-d", tmp_path], cwd=ROOT, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    for name in ("CHANGELOG.md", "CITATION.cff", "requirements/run.lock"):
        assert (source / name).is_file()
    subprocess.run([hatchling, "build", "-t", "wheel", "-d", tmp_path], cwd=source, check=True)
    rebuilt = next(tmp_path.glob("*.whl"))
    assert set(zipfile.ZipFile(rebuilt).namelist()) == set(zipfile.ZipFile(wheel).namelist())
    # To the last byte: who builds a release again can tell that it is ours.
    assert rebuilt.read_bytes() == wheel.read_bytes()


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    image = (ROOT / "deploy/Dockerfile").read_text()
    assert f'org.opencontainers.image.version="{version}"' in image
    assert f"hedged-bandits:{version} ." in image
    assert f"image: hedged-bandits:{version}\n" in (ROOT / "deploy/compose.yaml").read_text()
    chart = (ROOT / "deploy/helm/Chart.yaml").read_text()
    assert f"\nversion: {version}\nappVersion: {version}\n" in chart


def test_the_changelog_begins_with_this_version_and_its_date():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    date = re.search(r"(?m)^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text())[1]
    versions = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text())
    assert versions[0] == f"{version} ({date})"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in versions)
