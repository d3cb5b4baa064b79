"""`hb status`: the whole system on one screen."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cli.ensembles import FilesArgument, in_folder, load_all
from cli.output import EXIT_FOUND, JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption
from settings.errors import HbError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from agents.monitor.overview import Overview
    from agents.monitor.reliability import Standing
    from settings.model import Settings
    from streams.engine.health import Verdict

_EVERY = 2.0
_AT_ONCE = 8
_PATIENCE = 5.0
"""Seconds to wait for a broker."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(status)


def status(
    files: FilesArgument = None,
    *,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Show every settings file in this folder, one line each."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh every two seconds until Ctrl-C.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Say whether you can rely on the diagnoses, and show the figures behind that.

    The first line is the console's verdict: untaught, learning, healthy, or degraded and why. Then
    come error rates and weights, pending labels, tasks with their workers, and topics. Everything
    is read from the broker. The exit code is 1 if something is broken (the line is red) and 4 if
    the broker does not answer.

    Examples: `hb status`, `hb status --watch`, `hb status --all` for all ensembles of this folder.
    """
    if all_ or len(files or ()) > 1:
        if watch:
            raise typer.BadParameter("--watch shows one ensemble only")
        _all(load_all(files or in_folder(settings), None, set_), json=json)
        return
    (loaded,) = load_all(files, settings, set_).values()
    if watch:
        if json:
            raise typer.BadParameter("--json and --watch exclude each other")
        _watch(loaded)
        return
    reading = _look(loaded)
    if json:
        from cli.status_screen import report

        figures = report(loaded, reading.overview) if reading.overview is not None else {}
        verdicts = {"standing": reading.standing.report(), "verdict": reading.verdict.report()}
        print_json({**verdicts, **figures})
    else:
        out.print(_shown(loaded, reading))
    if reading.error is not None:
        raise reading.error
    if reading.standing.colour == "red":
        sys.exit(EXIT_FOUND)


def _all(ensembles: "dict[Path, Settings]", *, json: bool) -> None:
    """Show every ensemble on a line of its own."""
    from concurrent.futures import ThreadPoolExecutor

    from cli.status_screen import line_of_each, report

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looks = dict(zip(ensembles, pool.map(_look, ensembles.values()), strict=True))
    if json:
        print_json(
            {
                "ensembles": [
                    {
                        "name": ensembles[file].name,
                        "file": str(file),
                        "standing": look.standing.report(),
                        "verdict": look.verdict.report(),
                        **({} if look.overview is None else report(ensembles[file], look.overview)),
                    }
                    for file, look in looks.items()
                ]
            }
        )
    else:
        by_name = {ensembles[file].name: look for file, look in looks.items()}
        for part in line_of_each({k: (v.standing, v.overview) for k, v in by_name.items()}):
            out.print(part)
    for look in looks.values():
        if look.error is not None:
            raise look.error
    if any(look.standing.colour == "red" for look in looks.values()):
        sys.exit(EXIT_FOUND)


class Seen(NamedTuple):
    """The result of looking at the system: the system, or the error that prevented it.

    standing   whether its diagnoses can be relied on
    verdict    whether it works, as `/readyz` has it
    """

    overview: "Overview | None"
    error: HbError | None
    standing: "Standing"
    verdict: "Verdict"


def _look(settings: "Settings") -> Seen:
    from agents.monitor.reliability import standing
    from agents.monitor.system_health import system_verdict
    from agents.monitor.watch import look

    overview, wrong = None, None
    try:
        overview = asyncio.run(look(settings, _PATIENCE))
    except HbError as error:
        wrong = error
    verdicts = standing(settings, overview, wrong), system_verdict(overview, wrong)
    return Seen(overview, wrong, *verdicts)


def _watch(settings: "Settings") -> None:
    """Keep refreshing the display; if the broker is away, say so and wait for it."""
    from rich.live import Live

    shown: RenderableType = "looking"
    try:
        with Live(shown, console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                shown = _shown(settings, _look(settings))
                live.update(shown, refresh=True)
                time.sleep(_EVERY)
    except KeyboardInterrupt:
        out.print(shown)


def _shown(settings: "Settings", reading: Seen) -> "RenderableType":
    """Return the verdict, and then everything."""
    from rich.console import Group

    from cli.status_screen import screen, verdict_lines

    lines = verdict_lines(reading.standing)
    return (
        Group(*lines)
        if reading.overview is None
        else Group(*lines, screen(settings, reading.overview))
    )
