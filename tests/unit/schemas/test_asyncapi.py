"""The AsyncAPI document names every topic, and everything it refers to is in it."""

import jsonschema
import pytest

from schemas.asyncapi import RECEIVED, asyncapi
from schemas.json_schemas import RECORDS

DOCUMENT = asyncapi("0.0.1")


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
    found = set(references(DOCUMENT))
    assert "#/components/schemas/diagnosis" in found
    for reference in found:
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
