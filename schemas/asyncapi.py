"""The AsyncAPI document: every topic with its record and who writes it, for other tools.

It describes `hb` as the application: `receive` is what users publish, `send` what they read.
"""

from inspect import getdoc
from typing import Any

from schemas import traces
from schemas.json_schemas import RECORDS, json_schema
from schemas.records import TOPICS

ASYNCAPI = "3.0.0"
RECEIVED = ("instance", "context", "label")
"""The records that users publish; all others are written by `hb`."""
_PARAMETERS = {
    "prefix": {"description": "`topics.prefix` of the settings; by default the name and a dot."},
    "learner": {"description": "The name of a local learner in the settings."},
}
TRACED = ("instance", "prediction", "diagnosis")
"""The records that may carry the trace of their patient."""
_TRACED = {
    "type": "object",
    "properties": {
        traces.HEADER: {
            "type": "string",
            "pattern": traces.PATTERN,
            "description": "W3C Trace Context. It is carried on from the instances to the"
            " diagnosis; any other value is ignored.",
        }
    },
}
_DIALECT_KEYS = ("$schema", "$id")


def asyncapi(version: str, prefix: str | None = None) -> dict[str, Any]:
    """Return the document for a version of `hb`; with `prefix`, for the topics of one ensemble.

    >>> asyncapi("1.0")["channels"]["label"]["address"]
    '{prefix}labels'
    >>> asyncapi("1.0", "wdbc.")["channels"]["instance"]["address"]
    'wdbc.instances.{learner}'
    """
    schemas: dict[str, Any] = {}
    topics = {record.__name__.lower(): topic for topic, record in TOPICS.items()}
    for name in RECORDS:
        schemas.update(_components(name))
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "Hedged Bandits",
            "version": version,
            "description": "Patients come in on one topic per local learner, diagnoses go out on"
            " one. Every record has the instance id as its key, in UTF-8, and stands on the"
            " partition that murmur2 gives the key; readers must read committed records only.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(name, topics[name], prefix) for name in RECORDS},
        "operations": {_operation(name): _action(name) for name in RECORDS},
        "components": {"messages": {name: _message(name) for name in RECORDS}, "schemas": schemas},
    }


def _channel(name: str, topic: str, prefix: str | None) -> dict[str, Any]:
    address = ("{prefix}" if prefix is None else prefix) + topic.replace("<learner>", "{learner}")
    return {
        "address": address,
        "description": getdoc(RECORDS[name]),
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "parameters": {key: value for key, value in _PARAMETERS.items() if f"{{{key}}}" in address},
    }


def _operation(name: str) -> str:
    return ("receive" if name in RECEIVED else "send") + name.capitalize()


def _action(name: str) -> dict[str, Any]:
    return {
        "action": "receive" if name in RECEIVED else "send",
        "channel": {"$ref": f"#/channels/{name}"},
        "messages": [{"$ref": f"#/channels/{name}/messages/{name}"}],
    }


def _message(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "contentType": "application/json",
        **({"headers": _TRACED} if name in TRACED else {}),
        "payload": {"$ref": f"#/components/schemas/{name}"},
        "examples": [{"payload": example} for example in json_schema(name)["examples"]],
        "bindings": {"kafka": {"key": {"type": "string", "description": "The instance id."}}},
    }


def _components(name: str) -> dict[str, Any]:
    """Return a record's schema and those of its parts, as components that refer to each other."""
    schema = json_schema(name)
    parts = schema.pop("$defs", {})
    for key in _DIALECT_KEYS:
        del schema[key]
    moved: dict[str, Any] = _rewritten({name: schema, **parts})
    return moved


def _rewritten(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: value.replace("#/$defs/", "#/components/schemas/")
            if key == "$ref"
            else _rewritten(value)
            for key, value in node.items()
        }
    return [_rewritten(item) for item in node] if isinstance(node, list) else node
