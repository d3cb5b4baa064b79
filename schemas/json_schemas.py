"""The JSON Schemas of the records, for producers and consumers in other languages."""

from typing import Any

import msgspec
from msgspec import Struct

from schemas.examples import EXAMPLES
from schemas.kinds import VERSION
from schemas.records import TOPICS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

RECORDS: dict[str, type[Struct]] = {record.__name__.lower(): record for record in TOPICS.values()}
"""The records by their names in `hb schema` and in the schemas' ids."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a record.

    >>> json_schema("label")["required"]
    ['v', 'id', 'label', 'at']
    """
    record = RECORDS[name]
    # Through JSON and back, so that it is made of what JSON has: defaults may be tuples.
    generated = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(record)))
    parts = generated["$defs"]
    schema = {
        "$schema": DIALECT,
        "$id": f"urn:hedged-bandits:{name}:{VERSION}",
        **parts.pop(record.__name__),
        "examples": [msgspec.json.decode(msgspec.json.encode(EXAMPLES[record]))],
    }
    schema["properties"]["v"] = {"const": VERSION, "description": "Version of the record."}
    return {**schema, "$defs": parts} if parts else schema
