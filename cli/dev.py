"""`hb test`, `hb check` and `hb dashboards`: for those who change the code."""

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
"""What holds of the source without running it, each a program beside this Python."""

SPREAD = ["--numprocesses=2", "--dist=loadfile"]
"""The whole suite waits for brokers about as long as it computes, so two processes share it."""


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.command(context_settings=PASS_ON, rich_help_panel="Development")(test)
    app.command(rich_help_panel="Development")(check)
    app.command(rich_help_panel="Development")(dashboards)


def test(context: typer.Context) -> None:
    """Run the whole suite on two cores, or what you name (`hb test -k ledger`, as for pytest)."""
    _need_checkout()
    arguments = context.args or SPREAD
    # What the user types goes to pytest, as he asked.
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT))  # noqa: S603


def check() -> None:
    """Run everything that must hold before a commit: ruff, mypy, import-linter, tests, coverage."""
    _need_checkout()
    steps = {
        **CHECKS,
        "tests": ["pytest", *SPREAD, "-m", "not checks", "--cov", "--cov-report=term"],
    }
    failed = [name for name, step in steps.items() if not _passes(name, step)]
    if failed:
        typer.secho(f"failed: {', '.join(failed)}", fg="red", err=True)
        sys.exit(1)
    typer.secho("all checks passed", fg="green", err=True)


def dashboards() -> None:
    """Write Grafana's dashboards (`deploy/grafana/dashboards`) anew from their Python."""
    _need_checkout()
    sys.exit(subprocess.call([sys.executable, "-m", "deploy.grafana"], cwd=ROOT))


def _passes(name: str, step: list[str]) -> bool:
    typer.secho(f"== {name}: {' '.join(step)}", bold=True, err=True)
    program = Path(sys.executable).parent / step[0]
    return subprocess.call([program, *step[1:]], cwd=ROOT) == 0  # noqa: S603 - our own list


def _need_checkout() -> None:
    if not (ROOT / "tests").is_dir():
        raise InputError("the tests are not part of an installed hb; run this in its source tree")
    if find_spec("pytest") is None:
        raise InputError("pytest is not installed here; start it as ./hb test, which installs it")
