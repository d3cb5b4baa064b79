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
    *,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID=LABEL", help="Patients and their true labels."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read them from a CSV or `.jsonl` file with ids and labels."
        ),
    ] = None,
    amend: Annotated[
        bool,
        typer.Option(
            "--amend", help="Replace labels given earlier; without it, the first label counts."
        ),
    ] = False,
    withdraw: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Withdraw the label of this patient; may be given more than once.",
        ),
    ] = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Publish true labels.

    Either all are published, or none if one of them cannot be used. A patient's first label counts,
    and a different one is refused unless it amends the first. Labels can be amended or withdrawn
    until ensemble.amend_ttl after the first one.

    Examples: `hb label a17=malignant b02=benign`, `hb label --file labels.csv`, `hb label --amend
    a17=benign`, `hb label --withdraw a17`.
    """
    from agents.clients.label_publishing import pairs_in, pairs_of, publish_labels, withdrawals

    withdrawn = withdrawals(withdraw or ())
    if not pairs and file is None and not withdrawn:
        raise typer.BadParameter("give ID=LABEL, a --file, or --withdraw ID")
    loaded = load(settings, set_)
    labels = pairs_of(pairs or ()) + (pairs_in(file, loaded) if file else []) + withdrawn
    count = asyncio.run(publish_labels(loaded, labels, amends=amend)) - len(withdrawn)
    if json:
        print_json({"labels": count, "withdrawn": len(withdrawn), "amends": amend})
        return
    parts = [_words(count, "label"), _words(len(withdrawn), "withdrawal")]
    out.print(f"published: {', '.join(filter(None, parts))}", highlight=False)


def _words(count: int, noun: str) -> str:
    """Return how many of something there are, nothing for none.

    >>> _words(2, "label"), _words(0, "label")
    ('2 labels', '')
    """
    return f"{count:,} {noun}{'s' if count != 1 else ''}" if count else ""
