"""The schemas and the reference that are published are true, and complete."""

import ast
import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import schemas
from cli.main import app
from schemas.examples import EXAMPLES
from schemas.json_schemas import RECORDS, json_schema
from schemas.reference import replace_generated
from schemas.writing import encode
from settings.errors import InputError
from tests.unit.schemas.test_bad_input import FEEDBACK, INSTANCE, LABEL, PREDICTION

DOCS = Path(__file__).parents[3] / "docs" / "records.md"


def hb(*arguments):
    return CliRunner().invoke(app, ["schema", *map(str, arguments)])


@pytest.mark.parametrize("name", RECORDS)
def test_a_schema_is_sound_and_takes_its_example(name):
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(json.loads(encode(EXAMPLES[RECORDS[name]])))
    validator.validate(schema["examples"][0])


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_is_described(name):
    schema = json_schema(name)
    for part in (schema, *schema.get("$defs", {}).values()):
        assert part["description"]
        assert all(field.get("description") for field in part["properties"].values())


GOOD = {"instance": INSTANCE, "label": LABEL, "prediction": PREDICTION, "feedback": FEEDBACK}
BAD = [
    ("label", {"v": 2}),
    ("label", {"v": None}),
    ("label", {"id": ""}),
    ("label", {"id": "a" * 201}),
    ("label", {"id": "a\n"}),
    ("label", {"id": 7}),
    ("label", {"at": -1}),
    ("label", {"at": 1.5}),
    ("label", {"at": True}),
    ("label", {"at": 1_760_000_000_000_000}),
    ("label", {"label": 7}),
    ("label", {"amends": None}),
    ("instance", {"x": "text"}),
    ("instance", {"x": [[1]]}),
    ("instance", {"x": {"age": True}}),
    ("prediction", {"cube": 52}),
    ("prediction", {"cube": "-1"}),
    ("prediction", {"accuracy": 1.5}),
    ("prediction", {"exploring": 0}),
    ("prediction", {"votes": {"logistic": 1}}),
    ("prediction", {"log_odds": []}),
    ("feedback", {"predicted": ""}),
]


@pytest.mark.parametrize(("name", "change"), BAD)
def test_a_schema_refuses_what_is_wrong(name, change):
    validator = Draft202012Validator(json_schema(name))
    validator.validate(GOOD[name])
    assert not validator.is_valid(GOOD[name] | change)


@pytest.mark.parametrize("name", RECORDS)
def test_a_schema_demands_every_required_field(name):
    schema = json_schema(name)
    for field in schema["required"]:
        cut = {k: v for k, v in schema["examples"][0].items() if k != field}
        assert not Draft202012Validator(schema).is_valid(cut)


def test_the_command_prints_one_object():
    assert json.loads(hb("--json").stdout) == {name: json_schema(name) for name in RECORDS}
    assert json.loads(hb("label", "--json").stdout) == json_schema("label")


def test_the_command_writes_one_file_each(tmp_path):
    result = hb("--out", tmp_path / "new", "--json")
    assert json.loads(result.stdout).keys() == RECORDS.keys()
    for name in RECORDS:
        written = tmp_path / "new" / f"{name}.schema.json"
        assert json.loads(written.read_text()) == json_schema(name)
    hb("label", "--out", tmp_path / "one")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["label.schema.json"]


def test_the_command_shows_tables():
    assert "feedback.<learner>" in hb().stdout
    shown = hb("prediction").stdout
    assert all(field in shown for field in ("cube", "log_odds", "epsilon"))


def test_the_command_says_what_is_wrong(tmp_path):
    result = hb("lable")
    assert result.exit_code == 2
    page = tmp_path / "page.md"
    page.write_text("no markers")
    assert isinstance(hb("--docs", page).exception, InputError)
    assert isinstance(hb("--docs", tmp_path / "none.md").exception, InputError)
    assert isinstance(hb("--out", page / "below").exception, InputError)
    assert page.read_text() == "no markers"


def test_the_page_in_the_docs_is_up_to_date(tmp_path):
    page = tmp_path / "records.md"
    page.write_text(DOCS.read_text())
    assert hb("--docs", page).exit_code == 0
    assert page.read_text() == DOCS.read_text(), "run `hb schema --docs docs/records.md`"
    assert "| `not_finite` |" in replace_generated(DOCS.read_text())


def test_schemas_need_nothing_but_msgspec():
    for path in Path(schemas.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names}
            assert roots <= {"schemas", "msgspec", *sys.stdlib_module_names}, path
