"""`hb status`: the whole system on one screen."""

import asyncio
import sys
import time
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.ensembles import FilesArgument, in_folder, load_all, load_each
from cli.output import EXIT_FOUND, JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption
from settings.errors import HbError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from agents.monitor.overview import Overview
    from agents.monitor.reliability import Concern, Standing
    from settings.model import Settings
    from streams.engine.health import Verdict

_EVERY = 2.0
_AT_ONCE = 8
_WAIT = 1.5
"""Seconds to wait for the broker: with starting and drawing, an answer takes about two."""
_CONNECTING = 0.7
"""The share of them in which it must answer at all."""
_OPEN_FOR = 1.0
"""Seconds after which a transaction that stays open is worth mentioning."""


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
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            envvar="HB_WAIT",
            help="How long to wait for the broker's answers.",
        ),
    ] = _WAIT,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Say whether you can rely on the diagnoses, and show the figures behind that.

    The first line is the console's verdict: untaught, learning, healthy, or degraded and why. Then
    come error rates and weights, pending labels, tasks with their workers, and topics. Everything
    is read from the broker. The exit code is 1 if something is broken (the line is red) and 4 if
    the broker does not answer, or not soon enough.

    Examples: `hb status`, `hb status --watch`, `hb status --all` for all ensembles of this folder.
    """
    if all_ or len(files or ()) > 1:
        if watch:
            raise typer.BadParameter("--watch shows one ensemble only")
        _all(load_each(files or in_folder(settings), set_), wait, json=json)
        return
    (loaded,) = load_all(files, settings, set_).values()
    if watch:
        if json:
            raise typer.BadParameter("--json and --watch exclude each other")
        _watch(loaded, wait)
        return
    reading = _look(loaded, wait)
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


def _all(ensembles: "dict[Path, Settings | HbError]", wait: float, *, json: bool) -> None:
    """Show every ensemble on a line of its own."""
    from concurrent.futures import ThreadPoolExecutor

    from cli.status_screen import line_of_each

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        seen = pool.map(_look_or_not, ensembles.values(), repeat(wait))
        looks = dict(zip(ensembles, seen, strict=True))
    if json:
        entries = [_entry(file, ensembles[file], look) for file, look in looks.items()]
        print_json({"ensembles": entries})
    else:
        named = {_name(file, ensembles[file]): look for file, look in looks.items()}
        for part in line_of_each({k: (v.standing, v.overview) for k, v in named.items()}):
            out.print(part)
    for look in looks.values():
        if look.error is not None:
            raise look.error
    if any(look.standing.colour == "red" for look in looks.values()):
        sys.exit(EXIT_FOUND)


def _name(file: "Path", settings: "Settings | HbError") -> str:
    return file.name if isinstance(settings, HbError) else settings.name


def _entry(file: "Path", settings: "Settings | HbError", look: "Seen") -> dict[str, Any]:
    """Return what is known of an ensemble as plain data."""
    from cli.status_screen import report

    figures: dict[str, Any] = {}
    if look.overview is not None and not isinstance(settings, HbError):
        figures = report(settings, look.overview)
    return {
        "name": _name(file, settings),
        "file": str(file),
        "standing": look.standing.report(),
        "verdict": look.verdict.report(),
        **figures,
    }


class Seen(NamedTuple):
    """The result of looking at the system: the system, or the error that prevented it.

    standing   whether its diagnoses can be relied on
    verdict    whether it works, as `/readyz` has it
    """

    overview: "Overview | None"
    error: HbError | None
    standing: "Standing"
    verdict: "Verdict"


def _look_or_not(settings: "Settings | HbError", wait: float) -> Seen:
    """Look at the system, unless its settings file is broken."""
    from agents.monitor.reliability import Colour, Concern, Standing, State
    from streams.engine.health import Verdict

    if not isinstance(settings, HbError):
        return _look(settings, wait)
    first, *_ = str(settings).splitlines()
    concern = Concern(Colour.RED, "settings_broken", first)
    sentence = f"Degraded because its settings cannot be used: {first}"
    return Seen(
        None, settings, Standing(State.DEGRADED, Colour.RED, sentence, (concern,)), Verdict()
    )


def _look(settings: "Settings", wait: float) -> Seen:
    from agents.monitor.reliability import standing
    from agents.monitor.system_health import system_verdict
    from agents.monitor.watch import look

    overview, wrong = None, None
    try:
        overview = asyncio.run(look(settings, _CONNECTING * wait, wait))
    except HbError as error:
        wrong = error
    reliable = standing(settings, overview, wrong, also=_still_open(overview))
    return Seen(overview, wrong, reliable, system_verdict(overview, wrong))


def _still_open(overview: "Overview | None") -> "Iterator[Concern]":
    """Yield the partitions that a transaction holds back, not yet for as long as a fault takes."""
    from agents.monitor.reliability import Colour, Concern
    from streams.engine.health import Cause
    from streams.engine.held_back import HELD_BACK_AFTER

    for partition in () if overview is None else overview.held_back:
        if _OPEN_FOR <= partition.seconds < HELD_BACK_AFTER:
            text = (
                f"a transaction has kept {partition.topic}/{partition.partition} back for at least"
                f" {partition.seconds:.0f} s"
            )
            yield Concern(Colour.AMBER, str(Cause.HELD_BACK), text)


def _watch(settings: "Settings", wait: float) -> None:
    """Keep refreshing the display; if the broker is away, say so and wait for it."""
    from rich.live import Live

    screen: RenderableType = "looking"
    try:
        with Live(screen, console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                screen = _shown(settings, _look(settings, wait))
                live.update(screen, refresh=True)
                time.sleep(_EVERY)
    except KeyboardInterrupt:
        out.print(screen)


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
