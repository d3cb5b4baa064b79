"""A program of ours that another starts is named by its imported module: import-linter sees it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "schemas", "learners", "settings", "streams", "agents", "audit", "experiments", "bench", "cli"
)  # fmt: skip


def hidden_starts(source: str) -> list[int]:
    """Return the lines that start a module of ours by a string: after -m, or inside -c."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List | ast.Tuple):
            for flag, argument in zip(node.elts, node.elts[1:], strict=False):
                if isinstance(flag, ast.Constant) and flag.value in ("-m", "-c"):
                    lines += [argument.lineno] if names_ours(argument) else []
    return lines


def names_ours(node: ast.expr) -> bool:
    parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    words = " ".join(part for part in parts if isinstance(part, str)).replace(".", " ").split()
    return any(word in PACKAGES for word in words)


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("[python, '-m', 'bench.core', x]", True),
        ("[python, '-m', f'bench.{name}']", True),
        ("[python, '-c', 'from cli.main import main; main()']", True),
        ("[python, '-m', core.__name__]", False),
        ("[python, '-m', 'pytest']", False),
    ],
)
def test_what_counts_as_hidden(source, hidden):
    assert bool(hidden_starts(source)) == hidden


def test_no_module_is_started_by_a_string():
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    starts = {
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        for line in hidden_starts(file.read_text())
    }
    assert starts == set()
