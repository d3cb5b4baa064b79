"""The JSON Schema of the settings file, with which editors complete keys and mark mistakes.

It says less than `hb settings check`, which also knows what keys mean together.
"""

from datetime import timedelta
from math import isinf
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from learners.fusion.registry import MODES
from learners.rules.options import REQUIRED, Option
from learners.rules.registry import KINDS
from settings.model import Settings
from settings.sections.base import format_duration

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {
    "number": "number",
    "integer": "integer",
    "text": "string",
    "label": "string",
    "flag": "boolean",
    "table": "object",
    "tables": "array",
}
_UNUSED = ("title", "default_text")


class _Written(GenerateJsonSchema):
    """Defaults as they are written in the file."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def settings_schema() -> dict[str, Any]:
    """Return the schema of `ensemble.toml`.

    >>> settings_schema()["required"]
    ['version', 'name', 'labels', 'positive', 'learners']
    """
    schema: dict[str, Any] = _plain(Settings.model_json_schema(schema_generator=_Written))
    parts = schema["$defs"]
    parts["EnsembleSettings"]["properties"]["mode"]["enum"] = list(MODES)
    rule = parts["RuleSettings"]
    rule["properties"]["kind"]["enum"] = list(KINDS)
    rule["allOf"] = [_options_of(name) for name in KINDS]
    return {"$schema": DIALECT, "title": "Settings of an ensemble of Hedged Bandits", **schema}


def _plain(node: Any) -> Any:
    """Leave out what editors do not need, and null, which TOML does not have."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {
        key: _properties(value) if key in {"properties", "$defs"} else _plain(value)
        for key, value in node.items()
        if not (key in _UNUSED or (key == "default" and (value is None or isinstance(value, dict))))
    }
    if isinstance(choices := schema.get("anyOf"), list):
        left = [choice for choice in choices if choice != {"type": "null"}]
        if len(left) == 1:
            del schema["anyOf"]
            return {**left[0], **schema}
        schema["anyOf"] = left
    return schema


def _properties(named: dict[str, Any]) -> dict[str, Any]:
    """Names of keys are kept, whatever they are."""
    return {name: _plain(value) for name, value in named.items()}


def _options_of(kind: str) -> dict[str, Any]:
    """Return what a rule of this kind may say beside its kind and weight."""
    options = KINDS[kind].options
    return {
        "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
        "then": {
            "properties": {option.name: _option(option) for option in options},
            "required": [option.name for option in options if option.default is REQUIRED],
        },
    }


def _option(option: Option) -> dict[str, Any]:
    types = [_TYPES[kind] for kind in option.kind.split("|")]
    described: dict[str, Any] = {"description": option.help, "type": types}
    if option.choices:
        described["enum"] = list(option.choices)
    if not isinf(option.low):
        described["exclusiveMinimum" if option.above else "minimum"] = option.low
    if not isinf(option.high):
        described["maximum"] = option.high
    if isinstance(option.default, str | int | float):
        described["default"] = option.default
    return described
