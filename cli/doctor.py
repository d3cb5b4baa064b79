"""`hb doctor`: checks whether everything an ensemble needs is there, and says what to do if not."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.output import EXIT_FOUND, JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption

if TYPE_CHECKING:
    from agents.doctor import Finding

_MARKS = {"ok": "[green]ok      [/green]", "warning": "[yellow]warning [/yellow]"}
_TROUBLE = "[red]trouble [/red]"


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(doctor)


def doctor(
    settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False
) -> None:
    """Check packages, disk, ports, broker, clocks, topics and state, and say what to do.

    Each line says ok, warning or trouble, and how to put it right; the exit code is 1 if there is
    trouble. Without a settings file only this machine is checked. To compare the clocks, a topic
    is created and deleted again, if this user may do that.

    Examples: `hb doctor`, `hb doctor --settings deploy/ensemble.toml`.
    """
    findings = asyncio.run(_collect(settings, set_ or [], show=not json))
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    if any(finding.verdict == "trouble" for finding in findings):
        sys.exit(EXIT_FOUND)


async def _collect(file: Path | None, overrides: list[str], *, show: bool) -> "list[Finding]":
    findings = []
    async for finding in _examine(file, overrides):
        findings.append(finding)
        if show:
            _print(finding)
    return findings


async def _examine(file: Path | None, overrides: list[str]) -> "AsyncIterator[Finding]":
    from agents.doctor import Finding, Verdict, examine_ensemble, examine_machine
    from settings.errors import SettingsError
    from settings.loading import load_settings, settings_path

    for finding in examine_machine():
        yield finding
    path = settings_path(file)
    if not path.exists():
        # Who names a file needs it; without one, this machine alone can be looked at.
        verdict: Verdict = "warning" if file is None else "trouble"
        yield Finding("settings", verdict, f"there is no {path}", "create one with: hb init")
        return
    try:
        loaded = load_settings(file, overrides)
    except SettingsError as error:
        yield Finding("settings", "trouble", str(error).splitlines()[0], "hb settings check")
        return
    yield Finding("settings", "ok", f"{path} describes {loaded.name}")
    async for finding in examine_ensemble(loaded):
        yield finding


def _print(finding: "Finding") -> None:
    from rich.markup import escape

    mark = _MARKS.get(finding.verdict, _TROUBLE)
    line = f"{mark}{finding.what + ':':<17}{escape(finding.found)}"
    out.print(line, highlight=False, soft_wrap=True)
    if finding.remedy:
        out.print(f"{'':25}-> {escape(finding.remedy)}", highlight=False, soft_wrap=True)
