"""`hb deadletters`: records that could not be used, and why; corrected ones can be sent again."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from collections import Counter

    from agents.clients.deadletters import Summary
    from schemas.records import DeadLetter


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(deadletters)


def deadletters(
    *,
    show: Annotated[
        int, typer.Option(min=0, metavar="N", help="List the last N, without their contents.")
    ] = 0,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write them all, with their contents, to FILE, one JSON object per line; only you"
            " can read it.",
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Send the corrected records of an exported file."),
    ] = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Count the records that could not be used, by reason and topic.

    To correct some of them, export them to a file, edit their values, delete the other lines, and
    replay the file. Either all are sent, or none if one of them is still bad.

    Examples: `hb deadletters --show 10`, `hb deadletters --export dead.jsonl`, `hb deadletters
    --replay dead.jsonl`.
    """
    if sum(bool(option) for option in (show, export, replay)) > 1:
        raise typer.BadParameter("--show, --export and --replay cannot be combined")
    loaded = load(settings, set_)
    if replay is not None:
        from agents.clients.deadletters import Replayer

        _print_replayed(asyncio.run(Replayer(loaded).replay(replay)), json)
        return
    if export is not None:
        from agents.clients import deadletters as letters

        count = asyncio.run(letters.export(loaded, export))
        if json:
            print_json({"exported": count, "file": str(export)})
        else:
            out.print(f"{count:,} written to {export}", highlight=False, markup=False)
        return
    from agents.clients.deadletters import summarise

    _print(asyncio.run(summarise(loaded, show)), json)


def _print(summary: "Summary", json: bool) -> None:
    if json:
        print_json(_report(summary))
        return
    if not summary.total:
        out.print("no dead letters", style="green")
        return
    counts = table("", "reason", "topic", "count", "meaning", right=("count",))
    for (reason, topic), count in summary.counts.most_common():
        counts.add_row(reason, topic, f"{count:,}", _meaning(reason))
    out.print(counts)
    if summary.last:
        latest = table("The latest", "time", "topic", "partition", "offset", "reason", "detail")
        for letter in summary.last:
            latest.add_row(*_row(letter))
        out.print(latest)


def _row(letter: "DeadLetter") -> list[str]:
    from datetime import datetime

    from rich.markup import escape

    time = datetime.fromtimestamp(letter.at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    place = letter.topic, str(letter.partition), str(letter.offset)
    return [time, *place, letter.reason, escape(letter.detail)]


def _report(summary: "Summary") -> dict[str, Any]:
    reasons: dict[str, int] = {}
    for (reason, _), count in summary.counts.items():
        reasons[reason] = reasons.get(reason, 0) + count
    hidden = ("key", "value")
    return {
        "total": summary.total,
        "reasons": reasons,
        "counts": [
            {"reason": reason, "topic": topic, "count": count}
            for (reason, topic), count in summary.counts.most_common()
        ],
        "letters": [
            {name: getattr(letter, name) for name in letter.__struct_fields__ if name not in hidden}
            for letter in summary.last
        ],
    }


def _meaning(code: str) -> str:
    from schemas.refusals import Reason

    meanings = {reason.value: reason.meaning for reason in Reason}
    return meanings.get(code, "this version does not know this reason")


def _print_replayed(sent: "Counter[str]", json: bool) -> None:
    if json:
        print_json({"sent": dict(sent)})
        return
    for topic, count in sent.items():
        out.print(f"{count:,} sent to {topic}", highlight=False, markup=False)
    if not sent:
        out.print("the file has no records")
