"""The reference of all records in Markdown, written from the records themselves."""

from inspect import getdoc
from typing import cast

import msgspec
from msgspec import Struct, inspect

from schemas.examples import EXAMPLES
from schemas.explain import in_words
from schemas.kinds import VERSION
from schemas.reasons import Reason
from schemas.records import TOPICS, Opinion

BEGIN = "<!-- written by `hb schema --docs`: begin -->"
END = "<!-- written by `hb schema --docs`: end -->"


def replace_generated(page: str) -> str:
    """Return a page with the part between its two markers written anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def reference() -> str:
    """Return the reference of every record and every reason code."""
    sections = [_section(f"`{topic}`: {r.__name__}", r) for topic, r in TOPICS.items()]
    sections.append(_section("Opinion, a part of a diagnosis", Opinion))
    return "\n".join([*sections, _reasons()])


def fields(record: type[Struct]) -> list[tuple[str, str, bool, str]]:
    """Return name, expected value, whether it is required, and meaning of each field."""
    kind = cast("inspect.StructType", inspect.type_info(record))
    rows = [(f.encode_name, in_words(f.type), f.required, _meaning(f.type)) for f in kind.fields]
    version = ("v", str(VERSION), True, "Version of the record.")
    return [version, *rows] if kind.tag_field else rows


def _meaning(kind: inspect.Type) -> str:
    extra = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return str((extra or {}).get("description", ""))


def _section(title: str, record: type[Struct]) -> str:
    lines = [f"### {title}", "", getdoc(record) or "", ""]
    lines += ["| field | holds | required | meaning |", "|---|---|---|---|"]
    for name, holds, required, meaning in fields(record):
        lines.append(f"| `{name}` | {holds} | {'yes' if required else 'no'} | {meaning} |")
    if record in EXAMPLES:
        text = msgspec.json.format(msgspec.json.encode(EXAMPLES[record]), indent=2).decode()
        lines += ["", "```json", text, "```"]
    return "\n".join([*lines, ""])


def _reasons() -> str:
    rows = [f"| `{reason.value}` | {reason.meaning} |" for reason in Reason]
    return "\n".join(["### Reason codes", "", "| code | meaning |", "|---|---|", *rows, ""])
