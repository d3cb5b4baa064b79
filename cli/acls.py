"""`hb acls`: what each role may do on the broker; printed, applied, and checked."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import EXIT_FOUND, JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from settings.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from settings.model import Settings
    from streams.kafka.acls import Comparison, Rule
    from streams.kafka.rights import Role

group = typer.Typer(no_args_is_help=True, help="Grant each role the rights it needs, and no more.")
UserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--user",
        metavar="ROLE=USER",
        help="The user of a role, such as `ensemble=CN=worker-7`; may be given more than once."
        "  [default: the ensemble's name, a dash and the role]",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="acls", rich_help_panel="Running")


@group.command("print")
def print_(
    *,
    user: UserOption = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print arguments for Kafka's kafka-acls.sh.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show what each role may do; needs no broker.

    Examples: `hb acls print`, `hb acls print --commands --user labels=CN=lab`.
    """
    roles = _roles(load(settings, set_), user or ())
    if json:
        print_json({"roles": [_as_json(role) for role in roles]})
        return
    if commands:
        from streams.kafka.rights import as_command

        for role in roles:
            sys.stdout.write(f"# {role.name}\n")
            sys.stdout.writelines(f"{as_command(role, r)}\n" for r in sorted(role.rights))
        return
    rights = table("", "role", "user", "operation", "on", "name")
    for role in roles:
        for right in sorted(role.rights, key=lambda r: (r.operation, r.resource, r.name)):
            name = f"{right.name}…" if right.prefixed else right.name
            rights.add_row(role.name, role.user, right.operation, right.resource, name)
    out.print(rights)


@group.command()
def apply(
    *,
    user: UserOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Add missing access rules and remove none; connect as the broker's administrator.

    Examples: `hb acls apply`, `hb acls apply --user labels=CN=lab`.
    """
    loaded = load(settings, set_)
    roles = _roles(loaded, user or ())
    added = asyncio.run(_compare(loaded, roles, adding=True)).missing
    if json:
        print_json({"added": [_rule(rule) for rule in added]})
    else:
        out.print(f"{len(added)} access rules added" if added else "all access rules exist already")


@group.command()
def check(
    *,
    user: UserOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the broker's access rules with the roles; the exit code is 1 if they differ.

    Example: `hb acls check`.
    """
    loaded = load(settings, set_)
    comparison = asyncio.run(_compare(loaded, _roles(loaded, user or ())))
    if json:
        print_json({name: [_rule(r) for r in getattr(comparison, name)] for name in _SIDES})
    elif comparison.missing or comparison.surplus:
        differences = table("", "", "principal", "operation", "on", "name")
        for name, side in _SIDES.items():
            for rule in getattr(comparison, name):
                right = rule.right
                place = right.resource, right.name
                differences.add_row(side, rule.principal, right.operation, *place)
        out.print(differences)
    else:
        out.print("every role may do what it needs and nothing more", style="green")
    if comparison.missing or comparison.surplus:
        sys.exit(EXIT_FOUND)


_SIDES = {"missing": "missing: hb acls apply", "surplus": "more than it needs"}


def _roles(settings: "Settings", options: "Sequence[str]") -> "list[Role]":
    from dataclasses import replace

    from streams.kafka.rights import roles

    by_name = {role.name: role for role in roles(settings)}
    for text in options:
        name, equals, user = text.partition("=")
        if not (equals and user) or name not in by_name:
            raise InputError(f"--user {text}: must be ROLE=USER; roles: {', '.join(by_name)}")
        by_name[name] = replace(by_name[name], user=user)
    return list(by_name.values())


async def _compare(
    settings: "Settings", roles: "Sequence[Role]", *, adding: bool = False
) -> "Comparison":
    """Compare the broker's access rules with the roles, and add the missing ones if told to."""
    from streams.kafka.acls import add, compare
    from streams.kafka.connection import admin_client

    async with admin_client(settings.broker) as admin:
        comparison = await compare(admin, roles)
        if adding:
            await add(admin, comparison.missing)
    return comparison


def _as_json(role: "Role") -> dict[str, Any]:
    from dataclasses import asdict

    rights = [asdict(right) for right in sorted(role.rights)]
    return {"role": role.name, "user": role.user, "rights": rights}


def _rule(rule: "Rule") -> dict[str, Any]:
    from dataclasses import asdict

    return {"principal": rule.principal, **asdict(rule.right)}
