"""The schema of the settings file accepts what `hb` accepts and marks what it can tell is wrong."""

import tomllib
from pathlib import Path

import jsonschema
import pytest

from settings.json_schema import settings_schema
from settings.loading import source_of, validate

ROOT = Path(__file__).parents[3]
SCHEMA = jsonschema.Draft202012Validator(settings_schema())
DEPLOYED = (ROOT / "deploy/ensemble.toml").read_text()


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(settings_schema())


def test_what_is_deployed_is_valid_by_both():
    validate(source_of(DEPLOYED, ROOT / "deploy/ensemble.toml"))
    assert list(SCHEMA.iter_errors(tomllib.loads(DEPLOYED))) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ensemble.mode", "wn"),
        ("ensemble.label_ttl", 30),
        ("worker.no_such_key", 1),
        ("learners.LEARNER.rules.r.kind", "logistik"),
        ("learners.LEARNER.rules.r.rate", 0),
        ("topics.partitions", "four"),
    ],
)
def test_it_marks_mistakes(path, value):
    tree = tomllib.loads(DEPLOYED)
    path = path.replace("LEARNER", next(iter(tree["learners"])))
    *tables, key = path.split(".")
    table = tree
    for name in tables:
        table = table.setdefault(name, {"kind": "logistic"} if name == "r" else {})
    table[key] = value
    assert list(SCHEMA.iter_errors(tree))


def test_defaults_are_written_as_in_the_file():
    ensemble = settings_schema()["$defs"]["EnsembleSettings"]["properties"]
    assert ensemble["label_ttl"]["default"] == "30d"
    assert "default" not in ensemble["eta_scale"]
    assert ensemble["eta_scale"]["type"] == "number"
