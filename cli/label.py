"""`hb label`: publish the true labels of patients."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.output import JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption, load


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(label)


def label(
    pairs: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID=LABEL…", help="Patients and their true labels."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read them from a CSV or `.jsonl` file with ids and labels."
        ),
    ] = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Publish true labels: `hb label a17=malignant b02=benign`, or from a file.

    All are published, or none if one of them cannot be used. The first label of a patient counts.
    """
    from agents.clients.label_publishing import pairs_in, pairs_of, publish_labels

    if not pairs and file is None:
        raise typer.BadParameter("give ID=LABEL, or a --file")
    loaded = load(settings, set_)
    found = pairs_of(pairs or ()) + (pairs_in(file, loaded) if file else [])
    count = asyncio.run(publish_labels(loaded, found))
    if json:
        print_json({"labels": count})
    else:
        out.print(f"published: {count:,} label{'s' if count != 1 else ''}", highlight=False)
