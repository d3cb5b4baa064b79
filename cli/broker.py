"""`hb broker`: a real Kafka on this machine, without Docker and without an installed Java."""

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.logging_options import FollowOption, LinesOption
from cli.output import EXIT_FOUND, JsonOption, err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from settings.errors import BrokerError, InputError

if TYPE_CHECKING:
    from settings.model import Settings
    from streams.broker import EmbeddedBroker, Node
    from streams.kafka.abilities import Abilities

group = typer.Typer(no_args_is_help=True, help="Run a real Kafka broker on this machine.")
DataOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The broker's folder.  [default: in the user's data folder]"),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="broker", rich_help_panel="Running")


@group.command()
def up(
    *,
    data: DataOption = None,
    brokers: Annotated[
        int | None, typer.Option(min=1, max=9, help="How many nodes; 3 for fault tests.")
    ] = None,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Use TLS, log-in by password or certificate, and access control: a user without an"
            " access rule may do nothing.",
        ),
    ] = False,
    roles: Annotated[
        Path | None,
        typer.Option(
            "--roles",
            metavar="FILE",
            help="With --secure: also create a user for each role of this settings file (hb acls).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port for clients.  [default: a free one]"),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Which Kafka, such as 3.9."
            "  [default: that of HB_KAFKA, else the one used before, else the newest]",
        ),
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Keep running, and stop the broker on Ctrl-C.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Start the broker, or show where it runs; it keeps its data and its port between runs.

    Examples: `hb broker up`, `hb broker up --brokers 3 --data /tmp/kafka`, `hb broker up --secure
    --roles ensemble.toml`.
    """
    from cli.download_progress import shown_progress
    from streams.broker import USER, EmbeddedBroker

    began = time.monotonic()
    if roles is not None and not secure:
        raise typer.BadParameter("--roles needs --secure")
    users = (USER, *_users(roles)) if secure else None
    with shown_progress() as progress:
        broker = EmbeddedBroker(
            data, brokers=brokers, users=users, port=port, kafka=kafka, progress=progress
        )
        if foreground and broker.running:
            raise BrokerError(
                f"the broker is already running at {broker.address}; to stop it: hb broker down"
            )
        broker.up()
    report = {**_report(broker), "seconds": round(time.monotonic() - began, 2)}
    if json:
        print_json(report)
    else:
        _say_up(report)
    if foreground:
        _stay(broker)


@group.command()
def down(data: DataOption = None, json: JsonOption = False) -> None:
    """Stop the broker cleanly; its data stays.

    Example: `hb broker down`.
    """
    from streams.broker import EmbeddedBroker

    broker = EmbeddedBroker(data)
    was_running = broker.running
    killed = [node.number for node in broker.down()]
    if json:
        print_json({"was_running": was_running, "killed": killed})
        return
    out.print("stopped" if was_running else "the broker was not running")
    for number in killed:
        err.print(f"node {number} did not stop in time and was killed", style="yellow")


@group.command()
def status(data: DataOption = None, json: JsonOption = False) -> None:
    """Show whether the broker runs and answers; the exit code is 1 if it does not.

    Example: `hb broker status`.
    """
    from streams.broker import EmbeddedBroker

    broker = EmbeddedBroker(data)
    report = {**_report(broker), "problem": _problem(broker)}
    if json:
        print_json(report)
    else:
        _say_status(report)
    if report["problem"]:
        sys.exit(EXIT_FOUND)


@group.command()
def check(
    *,
    role: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE", help="Exit with code 1 unless this user may do all the role needs."
        ),
    ] = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show what the user of these settings may do on the broker, and which roles that suffices for.

    Nothing is changed, and no record is read or written.

    Examples: `hb broker check`, `hb broker check --role labels`.
    """
    loaded = load(settings, set_)
    names = _roles_of(loaded)
    if role is not None and role not in names:
        raise InputError(f"--role {role}: must be one of: {', '.join(names)}")
    abilities = asyncio.run(_abilities(loaded))
    if json:
        print_json(_abilities_as_json(abilities, loaded))
    else:
        _say_abilities(abilities, loaded)
    if role is not None and role not in abilities.roles:
        sys.exit(EXIT_FOUND)


@group.command()
def logs(
    data: DataOption = None,
    node: Annotated[int, typer.Option(min=1, help="The node's number.")] = 1,
    lines: LinesOption = 50,
    follow: FollowOption = False,
) -> None:
    """Print the end of a node's log.

    Examples: `hb broker logs --follow`, `hb broker logs --node 2 -n 200`.
    """
    from streams.broker import EmbeddedBroker

    nodes = {member.number: member for member in EmbeddedBroker(data).nodes}
    if node not in nodes or not nodes[node].log.exists():
        raise InputError(f"node {node} has no log")
    with nodes[node].log.open(errors="replace") as log:
        text = log.readlines()
        sys.stdout.writelines(text[max(len(text) - lines, 0) :])
        while follow:
            sys.stdout.write(log.read())
            sys.stdout.flush()
            time.sleep(0.2)


@group.command()
def reset(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
) -> None:
    """Stop the broker and delete all its data: topics, records, ports, passwords.

    Example: `hb broker reset --yes`.
    """
    from streams.broker import EmbeddedBroker

    broker = EmbeddedBroker(data)
    existed = broker.exists
    if existed and not yes:
        if not sys.stdin.isatty():
            raise InputError(f"this would delete all topics in {broker.data}; add --yes to confirm")
        typer.confirm(f"Delete all topics in {broker.data}?", abort=True, err=True)
    broker.destroy()
    if json:
        print_json({"deleted": existed, "data": str(broker.data)})
    else:
        out.print("deleted" if existed else "there was nothing to delete")


async def _abilities(settings: "Settings") -> "Abilities":
    from streams.kafka.abilities import abilities
    from streams.kafka.connection import admin_client

    async with admin_client(settings.broker) as admin:
        return await abilities(admin, settings)


def _roles_of(settings: "Settings") -> list[str]:
    from streams.kafka.rights import roles

    return [role.name for role in roles(settings)]


def _abilities_as_json(abilities: "Abilities", settings: "Settings") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "user": _who(settings),
        "roles": list(abilities.roles),
        "missing_topics": sorted(abilities.missing),
        "rights": [asdict(right) for right in sorted(abilities.rights)],
    }


def _say_abilities(abilities: "Abilities", settings: "Settings") -> None:
    from streams.kafka.abilities import TOPIC_OPERATIONS
    from streams.kafka.rights import Right, roles

    operations = table("", "topic, group or transactional id", *TOPIC_OPERATIONS)
    topics = {r.name for role in roles(settings) for r in role.rights if r.resource == "topic"}
    for name in sorted(topics):
        missing = name in abilities.missing
        marks = [
            "yes" if Right("topic", name, o) in abilities.rights else "-" for o in TOPIC_OPERATIONS
        ]
        operations.add_row(name, *(["missing"] * len(marks) if missing else marks))
    needed = {r for role in roles(settings) for r in role.rights if r.resource != "topic"}
    for right in sorted(needed):
        name = f"{right.resource} {right.name}{'…' if right.prefixed else ''}"
        marks = ["" if o != right.operation else "yes" if right in abilities.rights else "-"
                 for o in TOPIC_OPERATIONS]  # fmt: skip
        operations.add_row(name, *marks)
    out.print(operations)
    able = ", ".join(abilities.roles) or "no role"
    out.print(f"{_who(settings)} may do what these roles need: {able}", markup=False)
    if abilities.missing:
        out.print(
            f"{len(abilities.missing)} topics are missing or hidden from this user;"
            " see hb topics create",
            style="yellow",
        )


def _who(settings: "Settings") -> str:
    security = settings.broker.security
    by_certificate = "the owner of the certificate" if security.cert_file else "everybody"
    return security.username or ("the owner of the token" if security.token else by_certificate)


def _users(file: Path | None) -> list[str]:
    """Return the users of all roles of a settings file."""
    if file is None:
        return []
    from settings.loading import load_settings
    from streams.kafka.rights import roles

    return [role.user for role in roles(load_settings(file))]


def _report(broker: "EmbeddedBroker") -> dict[str, Any]:
    plan = broker.plan
    return {
        "running": broker.running,
        "address": plan.address if plan else None,
        "secure": plan.secure if plan else False,
        "kafka": plan.kafka if plan else None,
        "data": str(broker.data),
        "nodes": [_node(node) for node in broker.nodes],
        "settings": _sections(broker) if plan and broker.running else [],
    }


def _node(node: "Node") -> dict[str, Any]:
    process = node.process.find()
    return {
        "node": node.number,
        "port": node.plan.nodes[node.number - 1].client,
        "running": process is not None,
        "pid": process.pid if process else None,
        "memory_mb": process.memory_info().rss >> 20 if process else None,
        "log": str(node.log),
    }


def _sections(broker: "EmbeddedBroker") -> list[str]:
    """Return the sections that a settings file needs, one text per listener."""
    from settings.render import broker_section

    ways = [broker.settings()]
    if ways[0].security.logs_in:
        ways.append(broker.certificate_settings())
    return [broker_section(way) for way in ways]


def _problem(broker: "EmbeddedBroker") -> str | None:
    from streams.kafka.connection import await_broker, quiet_client

    quiet_client()
    try:
        settings = broker.settings()
        asyncio.run(await_broker(settings, 3.0))
    except BrokerError as error:
        return str(error)
    dead = [str(node.number) for node in broker.nodes if not node.alive]
    return f"node {', '.join(dead)} is not running; start it with: hb broker up" if dead else None


def _say_up(report: dict[str, Any]) -> None:
    headline = f"Kafka {report['kafka']} is up at"
    out.print(
        f"{headline} [bold]{report['address']}[/bold] ({report['seconds']} s)", soft_wrap=True
    )
    out.print(f"data: {report['data']}", markup=False, highlight=False, soft_wrap=True)
    if report["secure"]:
        out.print("For a settings file, with a password or with a certificate:\n")
        out.print("\n".join(report["settings"]), markup=False, highlight=False, soft_wrap=True)


def _say_status(report: dict[str, Any]) -> None:
    if report["nodes"]:
        out.print(f"Kafka {report['kafka']}, data: {report['data']}", soft_wrap=True, markup=False)
        nodes = table("", "node", "port", "process", "memory", right=("port", "process", "memory"))
        for node in report["nodes"]:
            memory = f"{node['memory_mb']} MB" if node["running"] else "-"
            nodes.add_row(str(node["node"]), str(node["port"]), str(node["pid"] or "-"), memory)
        out.print(nodes)
    if report["problem"]:
        out.print(report["problem"], style="yellow", markup=False, soft_wrap=True)
    else:
        out.print(f"up and answering at [bold]{report['address']}[/bold]", soft_wrap=True)


def _stay(broker: "EmbeddedBroker") -> None:
    """Wait for Ctrl-C, a termination signal, or the end of the broker."""

    def leave(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)
    try:
        err.print("Ctrl-C to stop")
        while broker.running:
            time.sleep(0.5)
        raise BrokerError("the broker has exited; its log may say why: hb broker logs")
    except KeyboardInterrupt:
        broker.down()
        err.print("stopped")
