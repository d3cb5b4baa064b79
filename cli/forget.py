"""`hb forget`: erase patients, and say what was where and when it is gone."""

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import EXIT_FOUND, JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from agents.clients.forgetting import Forgotten


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(forget)


def forget(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="The patients' ids; `-` reads them from standard input, one per line, which keeps"
            " them out of the shell's history.",
        ),
    ] = None,
    *,
    subject: Annotated[
        str | None,
        typer.Option(metavar="S", help="All visits of the person with this subject."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what is kept, and where.")
    ] = False,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Do not wait for retention: remove the records from the topics as soon as their"
            " file is closed (a tenth of the retention, at most a day). This also removes all other"
            " patients' records up to the end of that file; `hb audit` and `hb replay` then see"
            " only what is left.",
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="How many seconds to wait for the workers to do it.")
    ] = 60.0,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Erase patients, or all visits of a person.

    Workers drop what they keep about them, and whatever arrives about them later. Their records
    disappear from the topics with retention, or sooner with `--purge`. What was learned stays:
    counts, which are sums over patients, and models (docs/privacy.md says what these tell of a
    patient). The exit code is 1 if a worker has not done its part yet; it
    will as soon as it runs.

    Examples: `hb forget a17 b02`, `hb forget --subject s5 --dry-run`, `hb forget a17 --purge`.
    """
    from agents.clients.forgetting import forget as run
    from agents.clients.forgetting import ids_of
    from agents.clients.pseudonyms import Pseudonyms
    from cli.audit import reading

    if not ids and subject is None:
        raise typer.BadParameter("give an ID, or --subject")
    loaded = load(settings, set_)
    pseudonyms = Pseudonyms(loaded)
    names = list(pseudonyms.ids(_names(ids or ())))
    with reading(visible=not json) as progress:
        if subject is not None:
            person = pseudonyms.subject(subject) or ""
            names += asyncio.run(ids_of(loaded, person, progress))
        outcome = asyncio.run(
            run(
                loaded, dict.fromkeys(names),
                progress=progress, look_only=dry_run, purge=purge, patience=wait,
            )
        )  # fmt: skip
    if json:
        print_json(_report(outcome))
    else:
        _print(outcome, dry_run=dry_run)
    if outcome.missing or outcome.left:
        sys.exit(EXIT_FOUND)


def _names(arguments: "list[str] | tuple[str, ...]") -> list[str]:
    names = [name for name in arguments if name != "-"]
    if len(names) < len(arguments):
        names += [line.strip() for line in sys.stdin if line.strip()]
    return names


def _report(outcome: "Forgotten") -> dict[str, Any]:
    from streams.clock import wall

    purged = {(place.topic, place.partition) for place in outcome.purged}
    compacted = {name: outcome.compacted_by(name, wall()) for name in outcome.waiting}
    left = {(place.topic, place.partition) for place in outcome.left}
    return {
        "patients": outcome.patients,
        "erased_before": outcome.again,
        "erasure_sent": outcome.sent,
        "not_yet_erased_by": list(outcome.missing),
        "topics": [
            {
                "topic": place.topic, "partition": place.partition, "records": place.records,
                "purged": where in purged, "cannot_be_purged_yet": where in left,
                "gone_by_ms": None if where in purged else outcome.gone_by(place),
                "purge_from_ms": outcome.closed_from(place),
                "records_of_others": place.others,
            }
            for where, place in sorted(outcome.kept.places.items())
        ],
        "state": [
            {
                "changelog": name, "patients": count, "gone_by_ms": compacted[name][0],
                "id_gone_by_ms": compacted[name][1],
            }
            for name, count in outcome.waiting.items()
        ],
    }  # fmt: skip


def _print(outcome: "Forgotten", *, dry_run: bool) -> None:
    report = _report(outcome)
    if not report["topics"] and not outcome.sent:
        out.print("nothing is kept of this patient" if not outcome.again else "erased before")
        return
    places = table("", "where", "records", "gone", right=("records",))
    for place in report["topics"]:
        where = f"{place['topic']}/{place['partition']}"
        places.add_row(where, f"{place['records']:,}", _when(place))
    for state in report["state"]:
        when = (
            f"{_by(state['gone_by_ms'])} if its worker runs, the id itself"
            f" {_by(state['id_gone_by_ms'])}"
        )
        if state["gone_by_ms"] is None:
            when = "not known: the topic has no max.compaction.lag.ms; see hb topics check --alter"
        if dry_run:
            when = "when the label arrives, or its time is over"
        places.add_row(state["changelog"], f"{state['patients']:,}", when)
    out.print(places)
    if dry_run:
        return
    if outcome.missing:
        out.print(
            f"erasure sent, but not yet confirmed by {', '.join(outcome.missing)}: their workers"
            " will do it as soon as they run; run this command again to see",
            style="yellow",
        )
    else:
        out.print("erased: no agent keeps anything but a digest of the id", style="green")


def _when(place: dict[str, Any]) -> str:
    if place["purged"]:
        count = place["records_of_others"]
        return f"now, with about {count:,} records of others; the file within minutes"
    if place["cannot_be_purged_yet"]:
        moment = datetime.fromtimestamp(place["purge_from_ms"] / 1000, UTC)
        return (
            f"{_by(place['gone_by_ms'])}; it can be purged once something newer than"
            f" {moment:%Y-%m-%d %H:%M} UTC is there and read: run this again then"
        )
    return _by(place["gone_by_ms"])


def _by(moment: int | None) -> str:
    if moment is None:
        return "never: its retention is forever; see --purge"
    return f"by {datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M} UTC"
