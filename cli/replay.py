"""`hb replay`: the recorded stream once more, with other settings."""

import asyncio
from typing import TYPE_CHECKING

import typer

from cli.audit import reading
from cli.output import JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import RATES, percent

if TYPE_CHECKING:
    from audit.replay.replay import Replay


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Monitoring")(replay)


def replay(
    settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False
) -> None:
    """Play the recorded patients and labels to learners with other settings, and compare.

    The settings file describes what ran live; `--set` says what to try instead: another mode,
    alpha, features, time-outs or rules. Nothing is written to any topic. Without `--set`, it
    gives the live diagnoses, or says how many differ and why.

    Examples: `hb replay`, `hb replay --set ensemble.mode=ah --set defaults.alpha=0.5`.
    """
    from audit.replay.replay import replay as run

    live, changed = load(settings, None), load(settings, set_)
    with reading(visible=not json) as progress:
        result = asyncio.run(run(live, changed, progress))
    if json:
        print_json(result.report())
    else:
        _print(result)


def _print(result: "Replay") -> None:
    sides = {
        "live": result.live.report(result.positive),
        "unchanged": result.unchanged.report(result.positive),
    }
    if result.replayed is not result.unchanged:
        sides["changed"] = result.replayed.report(result.positive)
    rows = table("", "", "", *sides, right=tuple(sides))
    for name in dict.fromkeys(name for side in sides.values() for name in side["rates"]):
        for rate, word in RATES.items():
            figures = (percent(side["rates"].get(name, {}).get(rate)) for side in sides.values())
            rows.add_row("" if rate != next(iter(RATES)) else name, word, *figures)
        rows.add_section()
    out.print(rows)
    counts = ", ".join(f"{side['labelled']:,} {name}" for name, side in sides.items())
    out.print(f"labelled: {counts}")
    regrets = ", ".join(f"{side['regret']:.2f} {name}" for name, side in sides.items())
    bound = list(sides.values())[-1]["regret_bound"]
    allowed = "no bound holds for this run" if bound is None else f"bound: {bound:.1f}"
    out.print(f"regret: {regrets} ({allowed})")
    compared = result.differences
    if result.agreement is not None and compared.agreement is not None:
        shares = f"{percent(compared.agreement)} unchanged"
        if "changed" in sides:
            shares += f", {percent(result.agreement)} changed"
        out.print(
            f"diagnoses that agree with the live ones: {shares}, of {compared.compared:,}",
            soft_wrap=True,
        )
    for caveat in result.caveats:
        out.print(f"  {caveat}", style="dim", highlight=False, soft_wrap=True)
