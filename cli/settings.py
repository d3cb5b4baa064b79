"""`hb settings`: validate the settings file, and show all of it.

Commands that need settings take `SettingsOption` and `SetOption`, and call `load`.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import EXIT_INPUT, JsonOption, err, out, print_json, table
from settings.errors import SettingsError

if TYPE_CHECKING:
    from settings.loading import Source
    from settings.model import Settings

group = typer.Typer(no_args_is_help=True, help="Check and show the settings file.")


def _complete_key(incomplete: str) -> list[str]:
    from settings.keys import complete

    return complete(incomplete)


SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        envvar="HB_SETTINGS",
        metavar="FILE",
        help="The settings file.  [default: ensemble.toml]",
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one value, such as `ensemble.mode=ah`; may be given more than once."
        " Environment variables work too: `HB_SET__ENSEMBLE__MODE=ah`.",
        autocompletion=_complete_key,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `hb`."""
    app.add_typer(group, name="settings", rich_help_panel="Settings")


def load(file: Path | None, overrides: list[str] | None) -> "Settings":
    """Return the settings for a command's options; what these leave without effect is said."""
    from settings.loading import read_source, validate

    source = read_source(file, overrides or ())
    for note in source.notes:
        err.print(f"hb: {note}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    return validate(source)


@group.command()
def check(
    settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False
) -> None:
    """Validate the settings file, and list every problem with its line.

    Examples: `hb settings check`, `hb settings check --settings deploy/ensemble.toml`.
    """
    from agents.model_sizes import model_sizes, size_warnings
    from settings.loading import read_source, validate

    try:
        source = read_source(settings, set_ or ())
        valid = validate(source)
    except SettingsError as error:
        if not json:
            raise
        print_json({"valid": False, "problems": _problems(error), "warnings": []})
        sys.exit(EXIT_INPUT)
    warnings = [*_warnings(valid), *size_warnings(valid)]
    if json:
        print_json(
            {
                "valid": True,
                "file": str(source.path),
                "problems": [],
                "warnings": warnings,
                "model_bytes": model_sizes(valid),
            }
        )
        return
    _summarise(source, valid)
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)


def _problems(error: SettingsError) -> list[dict[str, str]]:
    from settings.problems import Problem

    problems = [problem for problem in error.problems if isinstance(problem, Problem)]
    return [vars(problem) for problem in problems or [Problem("", "", str(error))]]


def _warnings(settings: "Settings") -> list[str]:
    """Return warnings about what the settings refer to and this machine lacks."""
    security = settings.broker.security
    warnings = []
    for key in ("key_password", "password"):
        secret = getattr(security, key)
        if secret is not None and secret.env and secret.env not in os.environ:
            warnings.append(f"broker.security.{key}: the {secret} is not set here")
        if secret is not None and secret.file and not secret.file.is_file():
            warnings.append(f"broker.security.{key}: {secret} does not exist")
    for key in ("ca_file", "cert_file", "key_file"):
        file = getattr(security, key)
        if file is not None and not file.is_file():
            warnings.append(f"broker.security.{key}: the file {file} does not exist")
    return warnings


def _summarise(source: "Source", settings: "Settings") -> None:
    out.print(f"[green]{source.path} is valid.[/green] Ensemble [bold]{settings.name}[/bold]:")
    learners = table(
        "", "learner", "features", "cuts", "rules", "feedback", right=("features", "cuts")
    )
    for name, learner in settings.learners.items():
        rules = ", ".join(learner.rules)
        learners.add_row(name, str(len(learner.features)), str(learner.m), rules, learner.feedback)
    out.print(learners)
    broker = settings.broker.bootstrap or "embedded"
    partitions = settings.topics.partitions
    plural = "s" if partitions > 1 else ""
    out.print(
        f"fusion {settings.ensemble.mode} · {len(settings.labels)} labels · broker {broker}"
        f" ({settings.broker.security.protocol}) · {partitions} partition{plural}",
        highlight=False,
    )


@group.command()
def show(settings: SettingsOption = None, set_: SetOption = None, json: JsonOption = False) -> None:
    """Print all settings, with defaults and overrides but without secrets.

    Examples: `hb settings show`, `hb settings show --set ensemble.mode=ah`.
    """
    from settings.loading import read_source, validate
    from settings.render import origins, render

    source = read_source(settings, set_ or ())
    valid = validate(source, fitted=False)
    if json:
        dumped: dict[str, Any] = valid.model_dump(mode="json")
        print_json(
            {"file": str(source.path), "settings": dumped, "origins": origins(valid, source)}
        )
    elif out.is_terminal:
        from rich.syntax import Syntax

        out.print(Syntax(render(valid, source), "toml", background_color="default"))
    else:
        sys.stdout.write(render(valid, source))


@group.command()
def reference() -> None:
    """Print the reference of all keys as Markdown.

    Example: `hb settings reference > docs/settings.md`.
    """
    from settings.reference import reference_page

    sys.stdout.write(reference_page())


@group.command()
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors.

    Example: `hb settings schema > ensemble.schema.json`, with `#:schema ./ensemble.schema.json` as
    the first line of `ensemble.toml`. Editors with a TOML language server then complete keys,
    explain them and mark mistakes.
    """
    from settings.json_schema import settings_schema

    print_json(settings_schema())
