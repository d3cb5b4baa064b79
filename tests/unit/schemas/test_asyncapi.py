"""The AsyncAPI document names every topic, and everything it refers to is in it."""

import json
import lzma
from pathlib import Path

import jsonschema
import pytest

from schemas.asyncapi import RECEIVED, asyncapi
from schemas.json_schemas import RECORDS

DOCUMENT = asyncapi("0.0.1")
SPECIFICATION = Path(__file__).parents[2] / "data/asyncapi-3.0.0.schema.json.xz"
"""The schema of AsyncAPI 3.0.0 documents, as the AsyncAPI Initiative publishes it (package
@asyncapi/specs 6.11.1, Apache-2.0)."""


def test_it_is_valid_by_the_schema_of_the_specification():
    validator = jsonschema.Draft7Validator(json.loads(lzma.decompress(SPECIFICATION.read_bytes())))
    validator.validate(DOCUMENT)
    validator.validate(asyncapi("0.0.1", "wdbc."))
    wrong = {**DOCUMENT, "operations": {"read": {"action": "publish"}}}
    assert not validator.is_valid(wrong)


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_reference_leads_somewhere():
    pointers = set(references(DOCUMENT))
    assert "#/components/schemas/diagnosis" in pointers
    for reference in pointers:
        node = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_every_record_has_a_channel_and_an_operation():
    assert set(DOCUMENT["channels"]) == set(RECORDS)
    actions = {
        operation["channel"]["$ref"].rpartition("/")[2]: operation["action"]
        for operation in DOCUMENT["operations"].values()
    }
    assert {name for name, action in actions.items() if action == "receive"} == set(RECEIVED)
    assert set(actions) == set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_the_examples_fit_their_payloads(name):
    message = DOCUMENT["components"]["messages"][name]
    schema = {**message["payload"], "components": DOCUMENT["components"]}
    for example in message["examples"]:
        jsonschema.Draft202012Validator(schema).validate(example["payload"])


def test_addresses_are_those_of_the_ensemble():
    channel = asyncapi("0.0.1", "wdbc.")["channels"]["instance"]
    assert channel["address"] == "wdbc.instances.{learner}"
    assert set(channel["parameters"]) == {"learner"}
