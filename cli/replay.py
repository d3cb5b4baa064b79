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

    The settings file describes what was live; `--set` what is tried: another mode, alpha, features,
    time-outs, rules. Nothing is written to any topic. Without `--set` the replay should agree with
    the live diagnoses, and says how far it does.
    """
    from audit.replay.replay import replay as run

    live, other = load(settings, None), load(settings, set_)
    with reading(shown=not json) as progress:
        found = asyncio.run(run(live, other, progress))
    if json:
        print_json(found.report())
    else:
        _print(found)


def _print(found: "Replay") -> None:
    sides = {
        "live": found.live.report(found.positive),
        "unchanged": found.unchanged.report(found.positive),
    }
    if found.replayed is not found.unchanged:
        sides["changed"] = found.replayed.report(found.positive)
    columns = [f"{said} {side}" for said in RATES.values() for side in sides]
    rows = table("", "", *columns, right=tuple(columns))
    for name in dict.fromkeys(name for side in sides.values() for name in side["rates"]):
        rates = [
            percent(side["rates"].get(name, {}).get(rate))
            for rate in RATES
            for side in sides.values()
        ]
        rows.add_row(name, *rates)
    out.print(rows)
    counts = ", ".join(f"{side['labelled']:,} {name}" for name, side in sides.items())
    out.print(f"labelled: {counts}")
    regrets = ", ".join(f"{side['regret']:.2f} {name}" for name, side in sides.items())
    bound = list(sides.values())[-1]["regret_bound"]
    allowed = "no bound with these settings" if bound is None else f"bound: {bound:.1f}"
    out.print(f"regret: {regrets} ({allowed})")
    if found.agreement is not None and found.unchanged_agreement is not None:
        shares = f"{percent(found.unchanged_agreement)} unchanged"
        if "changed" in sides:
            shares += f", {percent(found.agreement)} changed"
        out.print(f"diagnoses as they were live: {shares}, of {found.compared:,}", soft_wrap=True)
    for caveat in found.caveats:
        out.print(f"  {caveat}", style="dim", highlight=False, soft_wrap=True)
