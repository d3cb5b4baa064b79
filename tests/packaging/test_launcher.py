"""`./hb`, the launcher: on machines that lack things, twice at once, and with a lock that lies."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import need_tool

ROOT = Path(__file__).parents[2]
BUILD_PACKAGES = (
    "editables",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",
)

SCRIPTS = ("hb", ".ci/run", "requirements/relock", "tests/deploy/kubernetes/build")

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tiny"
version = "0"
requires-python = ">=3.11,<3.15"
[project.scripts]
hb = "tiny:main"
[tool.hatch.build.targets.wheel]
packages = ["tiny"]
"""


def run(folder, *arguments, path=None, shell="dash", **env):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("HB_", "VIRTUAL"))
    }
    environment |= env
    if path is not None:
        environment["PATH"] = str(path)
    return subprocess.run(
        [need_tool(shell, shell), str(folder / "hb"), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


@pytest.fixture
def project(tmp_path):
    """A project with the real launcher, a package of one line, and what it takes to build it."""
    folder = tmp_path / "a project"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "__init__.py").write_text(
        "def main():\n    import sys\n    print('tiny', *sys.argv[1:])\n"
    )
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "requirements").mkdir()
    lock = (ROOT / "requirements" / "run.lock").read_text()
    entries = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)
    lock = "".join(e for e in entries if e.split("==")[0] in BUILD_PACKAGES)
    for name in ("worker", "build", "run", "dev"):
        (folder / "requirements" / f"{name}.lock").write_text(lock)
    shutil.copy(ROOT / "hb", folder / "hb")
    return folder


def tools(tmp_path, *names):
    """A PATH with the basic commands and, of the rest, only `names`."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    basic = ["awk", "cat", "cksum", "dirname", "env", "kill", "ls", "mkdir", "rm", "sed", "sh"]
    for name in (*basic, *names):
        path = shutil.which(name)
        assert path is not None, name
        if not (folder / name).exists():
            (folder / name).symlink_to(path)
    return folder


def test_the_launcher_is_sound_posix_shell():
    process = subprocess.run(
        [need_tool("shellcheck", "shellcheck"), *(ROOT / script for script in SCRIPTS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout


def test_without_python_it_says_one_sentence(project, tmp_path):
    process = run(project, "--help", path=tools(tmp_path))
    assert process.returncode == 3
    assert re.fullmatch(r"hb: needs Python 3\.11 or later.*\n", process.stderr)


def test_an_old_python_counts_as_none(project, tmp_path):
    old = tmp_path / "bin"
    tools(tmp_path)
    (old / "python3").write_text("#!/bin/sh\nexit 1\n")
    (old / "python3").chmod(0o755)
    process = run(project, "--help", path=old)
    assert process.returncode == 3
    assert "needs Python 3.11 or later" in process.stderr


def python_of(folder, name, minor):
    """Put a Python into a folder that says it is another version, and else is this one."""
    stub = folder / name
    asked = f"case $* in *version_info?1*) echo {minor} ;;"
    stub.write_text(f'#!/bin/sh\n{asked} *) exec {sys.executable} "$@" ;; esac\n')
    stub.chmod(0o755)


def test_a_python_that_is_too_new_is_named_and_an_older_one_used(project, tmp_path):
    folder = tools(tmp_path)
    python_of(folder, "python3", 99)
    refused = run(project, "one", path=folder)
    assert refused.returncode == 3
    made_for = "and the locked packages are made for 3.11 to 3.14"
    assert refused.stderr.startswith(f"hb: python3 is Python 3.99, {made_for}; install one")
    assert refused.stderr.count("\n") == 1
    assert run(project, "one", path=folder, HB_PYTHON="python3").stderr == refused.stderr
    python_of(folder, "python3.12", 12)
    used = run(project, "one", path=folder)
    assert used.stdout == "tiny one\n", used.stderr
    assert f"hb: python3 is Python 3.99, {made_for}; using python3.12\n" in used.stderr


def test_the_launcher_finds_the_bounds_in_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'(?m)^requires-python = ">=3\.\d+,<3\.\d+"$', text)


def test_ci_tries_every_python_that_pyproject_allows():
    oldest, limit = map(
        int,
        re.search(
            r'(?m)^requires-python = ">=3\.(\d+),<3\.(\d+)"$', (ROOT / "pyproject.toml").read_text()
        ).groups(),
    )
    tried = re.search(r"for minor in ([\d ]+); do", (ROOT / ".ci/run").read_text())
    assert [int(minor) for minor in tried[1].split()] == [*reversed(range(oldest, limit))]


def with_installer(name):
    """Where to find uv, which comes with the development packages; or to do without it."""
    if name == "pip":
        return {"HB_NO_UV": "1"}
    return {"path": f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"}


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_first_use_sets_up_and_later_uses_start_at_once(project, installer):
    extra = with_installer(installer)
    first = run(project, "one", "two words", **extra)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "tiny one two words\n"
    assert "setting up" in first.stderr
    later = run(project, "again", **extra)
    assert (later.stdout, later.stderr) == ("tiny again\n", "")
    # A changed lock is installed again.
    lock = project / "requirements" / "worker.lock"
    lock.write_text(lock.read_text() + "\n")
    again = run(project, "three", **extra)
    assert again.stdout == "tiny three\n"
    assert "setting up" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "layer"),
    [
        (["status"], "worker"),
        (["init", "--dataset", "wdbc"], "run"),
        (["demo"], "run"),
        (["plan", "--plot", "a b.png"], "dev"),
        (["experiments", "all"], "dev"),
    ],
)
def test_what_a_command_needs_decides_which_lock_is_installed(project, arguments, layer):
    process = run(project, *arguments, **with_installer("uv"))
    assert process.stdout == f"tiny {' '.join(arguments)}\n", process.stderr
    assert [file.name for file in (project / ".venv").glob(".hb-*")] == [f".hb-{layer}"]
    assert f"packages of requirements/{layer}.lock" in process.stderr
    less = run(project, "status", **with_installer("uv"))
    assert (less.stdout, less.stderr) == ("tiny status\n", ""), "a larger layer is enough"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_package_with_another_hash_is_refused(project, installer):
    lock = project / "requirements" / "worker.lock"
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text()))
    process = run(project, "one", **with_installer(installer))
    assert process.returncode == 3
    assert "the set-up failed" in process.stderr
    assert "tiny" not in process.stdout
    assert not list((project / ".venv").glob(".hb-*"))


def test_a_lock_left_by_a_dead_set_up_is_taken_over(project):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = project / ".venv.lock"
    left.mkdir()
    (left / "pid").write_text(f"{gone.pid}\n")
    process = run(project, "on")
    assert process.stdout == "tiny on\n"
    assert not left.exists()


def test_the_launcher_can_be_run():
    for script in SCRIPTS:
        assert (ROOT / script).stat().st_mode & stat.S_IXUSR
