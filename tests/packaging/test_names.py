"""Variables name the thing, not the fact that there is one: a few words say nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("agents", "audit", "cli", "deploy", "learners", "schemas", "settings", "streams")
_WORDS = "each found gone held made mine said shown theirs thing things told wanted"
EMPTY = frozenset(_WORDS.split())
STORED = {("agents/doctor.py", "found"), ("streams/kafka/topic_admin.py", "found")}
"""Fields that are keys of JSON, which users rely on."""


def bindings(tree: ast.AST) -> Iterator[str]:
    """Yield each name that a module gives to a value."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name


def test_no_name_of_a_value_is_an_empty_word():
    names = {
        (str(file.relative_to(ROOT)), name)
        for folder in PRODUCT
        for file in (ROOT / folder).rglob("*.py")
        for name in bindings(ast.parse(file.read_text()))
        if name.strip("_") in EMPTY
    }
    assert sorted(names - STORED) == []
    assert names >= STORED
