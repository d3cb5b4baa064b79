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

group = typer.Typer(no_args_is_help=True, help="Who may do what on the broker, role by role.")
UserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--user",
        metavar="ROLE=USER",
        help="The user of a role, such as ensemble=CN=worker-7. May be given again."
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
        bool, typer.Option("--commands", help="As arguments of Kafka's kafka-acls.sh.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show what every role may do; needs no broker."""
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
    shown = table("", "role", "user", "operation", "on", "name")
    for role in roles:
        for right in sorted(role.rights, key=lambda r: (r.operation, r.resource, r.name)):
            name = f"{right.name}…" if right.prefixed else right.name
            shown.add_row(role.name, role.user, right.operation, right.resource, name)
    out.print(shown)


@group.command()
def apply(
    *,
    user: UserOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Add the access rules that are missing; remove none. Connect as the broker's administrator."""
    loaded = load(settings, set_)
    added = asyncio.run(_apply(loaded, _roles(loaded, user or ())))
    if json:
        print_json({"added": [_rule(rule) for rule in added]})
    else:
        out.print(f"{len(added)} access rules added" if added else "all access rules are there")


@group.command()
def check(
    *,
    user: UserOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the broker's access rules with the roles; exit code 1 if they differ."""
    loaded = load(settings, set_)
    found = asyncio.run(_compare(loaded, _roles(loaded, user or ())))
    if json:
        print_json({name: [_rule(r) for r in getattr(found, name)] for name in _SIDES})
    elif found.missing or found.surplus:
        shown = table("", "", "principal", "operation", "on", "name")
        for name, side in _SIDES.items():
            for rule in getattr(found, name):
                right = rule.right
                place = right.resource, right.name
                shown.add_row(side, rule.principal, right.operation, *place)
        out.print(shown)
    else:
        out.print("every role may do what it needs, and nothing else", style="green")
    if found.missing or found.surplus:
        sys.exit(EXIT_FOUND)


_SIDES = {"missing": "missing: hb acls apply", "surplus": "more than it needs"}


def _roles(settings: "Settings", given: "Sequence[str]") -> "list[Role]":
    from dataclasses import replace

    from streams.kafka.rights import roles

    found = {role.name: role for role in roles(settings)}
    for each in given:
        name, equals, user = each.partition("=")
        if not (equals and user) or name not in found:
            raise InputError(f"--user {each}: must be ROLE=USER; roles: {', '.join(found)}")
        found[name] = replace(found[name], user=user)
    return list(found.values())


async def _apply(settings: "Settings", roles: "Sequence[Role]") -> "tuple[Rule, ...]":
    from streams.kafka.acls import add, compare
    from streams.kafka.connection import admin_client

    async with admin_client(settings.broker) as admin:
        missing = (await compare(admin, roles)).missing
        await add(admin, missing)
    return missing


async def _compare(settings: "Settings", roles: "Sequence[Role]") -> "Comparison":
    from streams.kafka.acls import compare
    from streams.kafka.connection import admin_client

    async with admin_client(settings.broker) as admin:
        return await compare(admin, roles)


def _as_json(role: "Role") -> dict[str, Any]:
    from dataclasses import asdict

    rights = [asdict(right) for right in sorted(role.rights)]
    return {"role": role.name, "user": role.user, "rights": rights}


def _rule(rule: "Rule") -> dict[str, Any]:
    from dataclasses import asdict

    return {"principal": rule.principal, **asdict(rule.right)}
