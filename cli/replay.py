"""`hb replay`: the recorded stream once more, with other settings."""

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from cli.audit import reading
from cli.output import JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from audit.replay.replay import Replay

_RATES = ("per", "fpr", "fnr")


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
    live, again = found.live.report(found.positive), found.replayed.report(found.positive)
    columns = [f"{name.upper()} {what}" for name in _RATES for what in ("live", "replay")]
    rows = table("", "", *columns, right=tuple(columns))
    for name in dict.fromkeys([*live["rates"], *again["rates"]]):
        pairs = [
            _percent(side["rates"].get(name, {}).get(rate))
            for rate in _RATES
            for side in (live, again)
        ]
        rows.add_row(name, *pairs)
    out.print(rows)
    out.print(f"labelled: {live['labelled']:,} live, {again['labelled']:,} replayed")
    out.print(
        f"regret: {live['regret']:.2f} live, {again['regret']:.2f} replayed"
        f" (Hedge's bound: {again['regret_bound']:.1f})"
    )
    if found.agreement is not None:
        out.print(f"diagnoses that agree: {found.agreement:.2%} of {found.compared:,}")
    for caveat in found.caveats:
        out.print(f"  {caveat}", style="dim", highlight=False)


def _percent(number: Any) -> str:
    return "" if number is None else f"{number:.2%}"
