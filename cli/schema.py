"""`hb schema`: the records on the topics, for people and for programs in other languages."""

from pathlib import Path
from typing import Annotated

import typer

from cli.output import JsonOption, err, out, print_json, table


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(schema)


def _names(incomplete: str) -> list[str]:
    from schemas.json_schemas import RECORDS

    return [name for name in RECORDS if name.startswith(incomplete)]


def schema(
    record: Annotated[
        str | None,
        typer.Argument(
            metavar="RECORD", help="One record.  [default: all of them]", autocompletion=_names
        ),
    ] = None,
    *,
    folder: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the JSON Schemas to files in DIR."),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs", metavar="FILE", help="Write the reference into the marked part of this page."
        ),
    ] = None,
    as_asyncapi: Annotated[
        bool,
        typer.Option(
            "--asyncapi", help="Print the AsyncAPI document of all topics instead, as JSON."
        ),
    ] = False,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="With --asyncapi: the topics' prefix, such as `wdbc.`.  [default: left open]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the records of every topic, or write their JSON Schemas.

    Examples: `hb schema label` shows the fields of a record, `hb schema label --json` its JSON
    Schema, and `hb schema --out schemas/` writes one file for each record. `hb schema --asyncapi >
    asyncapi.json` describes all topics for tools that draw documentation or generate clients.
    """
    if as_asyncapi:
        _print_asyncapi(prefix)
        return
    from schemas.json_schemas import RECORDS, json_schema

    if record is not None and record not in RECORDS:
        raise typer.BadParameter(f"expected one of {', '.join(RECORDS)}", param_hint="RECORD")
    chosen = list(RECORDS) if record is None else [record]
    schemas = {name: json_schema(name) for name in chosen}
    if docs is not None:
        _write_docs(docs)
    if folder is not None:
        _write_schemas(folder, schemas)
    if as_json:
        print_json(schemas if record is None else schemas[record])
    elif folder is None and docs is None:
        out.print(_overview() if record is None else _fields(record))


def _print_asyncapi(prefix: str | None) -> None:
    from importlib.metadata import version

    from schemas.asyncapi import asyncapi

    print_json(asyncapi(version("hedged-bandits"), prefix))


def _write_schemas(folder: Path, schemas: dict[str, dict[str, object]]) -> None:
    import orjson

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, schema in schemas.items():
            text = orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            (folder / f"{name}.schema.json").write_bytes(text)
    except OSError as error:
        raise _unusable(folder, error) from None
    err.print(f"{len(schemas)} schemas written to {folder}", markup=False, highlight=False)


def _write_docs(page: Path) -> None:
    from schemas.reference import replace_generated
    from settings.errors import InputError

    try:
        page.write_text(replace_generated(page.read_text()))
    except OSError as error:
        raise _unusable(page, error) from None
    except ValueError as error:
        raise InputError(f"{page}: {error}") from None


def _unusable(path: Path, error: OSError) -> Exception:
    from settings.errors import InputError

    return InputError(f"{path}: {error.strerror}")


def _overview() -> object:
    from inspect import getdoc

    from schemas.json_schemas import RECORDS
    from schemas.records import TOPICS

    rows = table("Records", "record", "topic", "what it is")
    topics = {record: topic for topic, record in TOPICS.items()}
    for name, record in RECORDS.items():
        rows.add_row(name, topics[record], (getdoc(record) or "").partition(". ")[0] + ".")
    return rows


def _fields(name: str) -> object:
    from schemas.json_schemas import RECORDS
    from schemas.reference import fields

    rows = table(name, "field", "required", "holds", "meaning")
    for field, holds, required, meaning in fields(RECORDS[name]):
        rows.add_row(field, "yes" if required else "no", holds, meaning)
    return rows
