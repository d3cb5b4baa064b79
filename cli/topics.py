"""`hb topics`: the topics that the settings declare, and those on the broker."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import EXIT_FOUND, JsonOption, err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from settings.model import Settings
    from streams.kafka.topic_admin import Difference
    from streams.kafka.topics import Topic

group = typer.Typer(no_args_is_help=True, help="Create and check the topics.")


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="topics", rich_help_panel="Running")


@group.command()
def create(
    settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False
) -> None:
    """Create missing topics; existing ones are not changed.

    Example: `hb topics create`.
    """
    created, differences = asyncio.run(create_missing(load(settings, set_)))
    if json:
        print_json(
            {"created": created, "differences": [_flat(difference) for difference in differences]}
        )
        return
    out.print(f"{len(created)} created" if created else "all topics exist")
    for name in created:
        out.print(f"  {name}", markup=False, highlight=False)
    if differences:
        err.print(
            "some existing topics differ from the settings; see hb topics check", style="yellow"
        )


@group.command()
def check(
    settings: SettingsOption = None,
    set_: SetOption = None,
    alter: Annotated[
        bool, typer.Option("--alter", help="Change the configuration of topics that differ.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show which topics differ from the settings, and how; the exit code is 1 if any do.

    Examples: `hb topics check`, or `hb topics check --alter` to bring them into line.
    """
    differences = asyncio.run(_check(load(settings, set_), alter))
    if json:
        print_json({"as_declared": not differences, "differences": [_flat(d) for d in differences]})
    elif differences:
        _print_differences(differences)
    else:
        out.print("all topics match the settings", style="green")
    if differences:
        sys.exit(EXIT_FOUND)


@group.command()
def describe(
    settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False
) -> None:
    """Show every topic, as the settings declare it and as it is on the broker.

    Example: `hb topics describe`.
    """
    from streams.kafka.topic_admin import compare
    from streams.kafka.topics import declared

    loaded = load(settings, set_)
    topics = declared(loaded)
    existing = asyncio.run(_find(loaded))
    if json:
        print_json({"topics": [_described(topic, existing.get(topic.name)) for topic in topics]})
        return
    numbers = ("partitions", "copies")
    rows = table("", "topic", "partitions", "copies", "kept", "on the broker", right=numbers)
    for topic in topics:
        wrong = [difference.what for difference in compare([topic], existing)]
        state = "missing" if "topic" in wrong else f"differs: {', '.join(wrong)}"
        copies = str(topic.replication)
        row = (
            topic.name,
            str(topic.partitions),
            copies,
            _kept(topic),
            state if wrong else "as declared",
        )
        rows.add_row(*row, style="yellow" if wrong else None)
    out.print(rows)


async def create_missing(settings: "Settings") -> tuple[list[str], list["Difference"]]:
    """Create missing topics; return them, and how the others differ."""
    from streams.kafka.connection import admin_client
    from streams.kafka.topic_admin import compare, create, find
    from streams.kafka.topics import declared

    topics = declared(settings)
    async with admin_client(settings.broker) as admin:
        created = await create(admin, topics)
        existing = await find(admin, [topic.name for topic in topics])
    return created, [
        difference for difference in compare(topics, existing) if difference.topic not in created
    ]


async def _check(settings: "Settings", change: bool) -> list["Difference"]:
    from streams.kafka.connection import admin_client
    from streams.kafka.topic_admin import alter, compare, find
    from streams.kafka.topics import declared

    topics = declared(settings)
    async with admin_client(settings.broker) as admin:
        if change:
            return await alter(admin, topics)
        return compare(topics, await find(admin, [topic.name for topic in topics]))


async def _find(settings: "Settings") -> dict[str, "Topic"]:
    from streams.kafka.connection import admin_client
    from streams.kafka.topic_admin import find
    from streams.kafka.topics import declared

    async with admin_client(settings.broker) as admin:
        return await find(admin, [topic.name for topic in declared(settings)])


def _print_differences(differences: Sequence["Difference"]) -> None:
    rows = table("", "topic", "what", "declared", "found", "fixed by")
    for difference in differences:
        rows.add_row(
            difference.topic,
            difference.what,
            difference.declared,
            difference.found,
            difference.remedy,
        )
    out.print(rows)


def _flat(difference: "Difference") -> dict[str, str]:
    return {**vars(difference), "remedy": difference.remedy}


def _described(topic: "Topic", existing: "Topic | None") -> dict[str, Any]:
    from streams.kafka.topic_admin import compare

    wrong = compare([topic], {topic.name: existing} if existing else {})
    return {
        "name": topic.name,
        "declared": _shape(topic, topic.config),
        "found": _shape(existing, topic.config) if existing else None,
        "differences": [_flat(difference) for difference in wrong],
    }


def _shape(topic: "Topic", keys: Mapping[str, str]) -> dict[str, Any]:
    config = {key: topic.config.get(key) for key in keys}
    return {"partitions": topic.partitions, "replication": topic.replication, "config": config}


def _kept(topic: "Topic") -> str:
    from datetime import timedelta

    from settings.sections.base import FOREVER, format_duration

    if topic.config["cleanup.policy"] == "compact":
        return "last of each key"
    span = int(topic.config["retention.ms"])
    return format_duration(timedelta(milliseconds=span) if span >= 0 else FOREVER)
