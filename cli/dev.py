"""`hb test`, `check`, `dashboards`, `docs`, `build`: for those who change the code, in a clone."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from settings.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


CHECKS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
}
"""What is checked without running the code; each is a program installed beside this Python."""

SPREAD = ["--numprocesses=4", "--dist=loadfile", "--no-loadscope-reorder"]
"""Four processes, because two cores are mostly idle while tests wait for brokers and workers. Files
are handed out in the order of `tests/conftest.py`, the slow ones first."""


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.command(context_settings=PASS_ON, rich_help_panel="Development")(test)
    app.command(rich_help_panel="Development")(check)
    app.command(rich_help_panel="Development")(dashboards)
    app.command(rich_help_panel="Development")(docs)
    app.command(rich_help_panel="Development")(build)


def test(context: typer.Context) -> None:
    """Run the test suite, or part of it: arguments go to pytest (`hb test -k ledger -x`)."""
    _need_checkout("test")
    arguments = context.args or SPREAD
    # pytest gets what the user typed, unchanged, and the signals that are meant for it.
    command = [sys.executable, "-m", "pytest", *arguments]
    os.chdir(ROOT)
    os.execve(sys.executable, command, _caching())  # noqa: S606


def check() -> None:
    """Run everything that must hold before a commit: ruff, mypy, import-linter, tests, coverage.

    It also lets pip-audit ask for known vulnerabilities of the locked packages, where it can.

    Example: `hb check`.
    """
    from cli import supply_chain

    _need_checkout("check")
    steps = {
        **CHECKS,
        "vulnerabilities": ["python", "-m", supply_chain.__name__],
        "tests": ["pytest", *SPREAD, "-m", "not checks", "--cov", "--cov-report=term"],
    }
    failed = [name for name, step in steps.items() if not _passes(name, step)]
    if failed:
        typer.secho(f"failed: {', '.join(failed)}", fg="red", err=True)
        sys.exit(1)
    typer.secho("all checks passed", fg="green", err=True)


def dashboards() -> None:
    """Regenerate the Grafana dashboards in `deploy/grafana/dashboards` from their Python code.

    Example: `hb dashboards`.
    """
    _need_checkout("dashboards")
    sys.exit(subprocess.call([sys.executable, "-m", "deploy.grafana"], cwd=ROOT))


def build() -> None:
    """Build the release into `dist`: the wheel, the source archive and the client's wheel.

    Example: `hb build`.
    """
    _need_checkout("build")
    from deploy.client.build import build as build_client

    program = Path(sys.executable).parent / "hatchling"
    subprocess.run([program, "build", "-t", "sdist", "-t", "wheel"], cwd=ROOT, check=True)  # noqa: S603
    typer.echo(build_client(ROOT / "dist"))


def docs() -> None:
    """Build the documentation as a site in the folder `site`; a broken link is an error.

    Example: `hb docs`.
    """
    _need_checkout("docs")
    program = Path(sys.executable).parent / "zensical"
    sys.exit(subprocess.call([program, "build", "--strict"], cwd=ROOT))  # noqa: S603


def _passes(name: str, step: list[str]) -> bool:
    typer.secho(f"== {name}: {' '.join(step)}", bold=True, err=True)
    program = Path(sys.executable).parent / step[0]
    return subprocess.call([program, *step[1:]], cwd=ROOT, env=_caching()) == 0  # noqa: S603 - our own list


def _caching() -> dict[str, str]:
    """Return an environment in which Python keeps what it has compiled.

    Containers often tell it not to. Tests start it hundreds of times, and each time it would
    compile everything again.
    """
    return {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def in_clone(folder: str) -> bool:
    """Tell whether this hb runs from a clone that has the folder."""
    return (ROOT / folder).is_dir()


def need_clone(folder: str, command: str) -> None:
    """Refuse a command whose code an installed hb does not have."""
    if not in_clone(folder):
        raise InputError(
            f"the installed hb does not include its {folder}; run ./hb {command} in a clone of its"
            " repository"
        )


def _need_checkout(command: str) -> None:
    need_clone("tests", command)
    if find_spec("pytest") is None:
        raise InputError("pytest is not installed here; run ./hb test, which installs it")
