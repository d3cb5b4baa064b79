"""The reference of all records in Markdown, generated from the records themselves."""

from inspect import getdoc
from typing import NamedTuple, cast

import msgspec
from msgspec import Struct, inspect

from schemas.examples import EXAMPLES
from schemas.explain import in_words
from schemas.kinds import VERSION
from schemas.records import TOPICS, Opinion, TrackRecord
from schemas.refusals import Reason

BEGIN = "<!-- written by `hb schema --docs`: begin -->"
END = "<!-- written by `hb schema --docs`: end -->"


def replace_generated(page: str) -> str:
    """Return a page with the part between its two markers replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def reference() -> str:
    """Return the reference of every record and every reason code."""
    sections = [_section(f"`{topic}`: {kind.__name__}", kind) for topic, kind in TOPICS.items()]
    sections.append(_section("Opinion, a part of a diagnosis", Opinion))
    sections.append(_section("Track record, a part of a diagnosis", TrackRecord))
    return "\n".join([*sections, _reasons()])


class Field(NamedTuple):
    """One field of a record, in words."""

    name: str
    holds: str
    required: bool
    meaning: str


def fields(record: type[Struct]) -> list[Field]:
    """Return the fields of a record."""
    kind = cast("inspect.StructType", inspect.type_info(record))
    described = [
        Field(field.encode_name, in_words(field.type), field.required, _meaning(field.type))
        for field in kind.fields
    ]
    version = Field("v", str(VERSION), True, "Version of the record.")
    return [version, *described] if kind.tag_field else described


def _meaning(kind: inspect.Type) -> str:
    extra = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return str((extra or {}).get("description", ""))


def _section(title: str, record: type[Struct]) -> str:
    lines = [f"### {title}", "", getdoc(record) or "", ""]
    lines += ["| field | holds | required | meaning |", "|---|---|---|---|"]
    for field in fields(record):
        required = "yes" if field.required else "no"
        lines.append(f"| `{field.name}` | {field.holds} | {required} | {field.meaning} |")
    if record in EXAMPLES:
        text = msgspec.json.format(msgspec.json.encode(EXAMPLES[record]), indent=2).decode()
        lines += ["", "```json", text, "```"]
    return "\n".join([*lines, ""])


def _reasons() -> str:
    rows = [f"| `{reason.value}` | {reason.meaning} |" for reason in Reason]
    return "\n".join(["### Reason codes", "", "| code | meaning |", "|---|---|", *rows, ""])
