"""The glossary explains the words of a diagnosis and of the code, each once."""

import ast
import re
from pathlib import Path

import msgspec
import pytest

from schemas.records import Diagnosis

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
WORDS = [
    word.strip()
    for row in re.findall(r"^\| (\*\*.+?) \| ", GLOSSARY, re.MULTILINE)
    for bold in re.findall(r"\*\*(.+?)\*\*", row)
    for word in bold.split(",")
]
EXPLAINED = (
    "learners/fusion/base.py",
    "learners/payloads.py",
    *sorted(str(file.relative_to(ROOT)) for file in (ROOT / "learners" / "join").glob("[a-z]*.py")),
)


def classes(file):
    """Return the public classes of a module; many of a kind in one class are explained as one."""
    tree = ast.parse((ROOT / file).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    plurals = {f"{name}s" for name in names}
    return {name for name in names - plurals if not name.startswith("_")}


def named(name):
    """Tell whether the glossary has a class by its name, or the words of that name."""
    spelt = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return bool(re.search(rf"\b{name}\b", GLOSSARY)) or spelt in WORDS


@pytest.mark.parametrize("file", EXPLAINED)
def test_the_classes_that_other_modules_speak_of_are_explained(file):
    assert [name for name in sorted(classes(file)) if not named(name)] == []


def test_each_field_of_a_diagnosis_is_explained():
    reference = (ROOT / "docs" / "records.md").read_text().partition("`diagnoses`: Diagnosis")[2]
    fields = [field.encode_name for field in msgspec.structs.fields(Diagnosis)]
    assert [name for name in fields if f"`{name}`" not in reference] == []


def test_no_word_is_explained_twice():
    assert sorted(word for word in set(WORDS) if WORDS.count(word) > 1) == []


def test_a_verdict_is_about_the_system_and_nothing_else():
    """Fusion rules fuse and audits compare; only health and `hb doctor` come to a verdict."""
    folders = ("audit", "experiments", "learners", "schemas", "settings")
    users = [
        str(file.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        if re.search("verdict", file.read_text(), re.IGNORECASE)
    ]
    assert users == []
