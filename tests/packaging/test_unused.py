"""What nothing uses is deleted: each function and class of the product is referred to somewhere."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "learners", "settings", "streams", "agents", "audit", "cli")
OTHERS = ("experiments", "bench", "deploy")
FOR_USERS = ("agents/testing.py", "agents/clients/client.py")
"""What users' programs call; each has a page and tests."""
DOCUMENTED = {
    "AssessedFusion": "docs/confidence.md",
    "small_loss_regret": "tests/theory/test_hedge_bounds.py",
}
"""What a page offers, and what a theorem is proven with."""
OVERRIDES = {
    "_create_worker_consumer", "_do_add_partitions_to_txn", "_do_txn_commit", "_fetch_records",
    "_new_consumer_thread", "_new_transport_tcp", "_new_web", "_settings_auth", "_stop_children",
    "_stop_exit_stacks", "_stop_futures", "call_thread", "connection_made", "loads_key",
    "loads_value", "on_assignment", "parse_response_header", "size_in_bytes",
}  # fmt: skip
"""What Faust, mode, aiohttp and aiokafka call by name."""

Tree = tuple[str, ast.Module]


def trees(folders: tuple[str, ...]) -> Iterator[Tree]:
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions and classes that nobody calls by being decorated."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            registered = any(isinstance(d, ast.Call | ast.Attribute) for d in node.decorator_list)
            if not node.name.startswith("__") and not registered:
                yield node.name


def referred(tree: ast.Module) -> Iterator[str]:
    """Yield each name that is read, called, or named in a string for a framework."""
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.:]+", text):
                yield from re.split(r"[.:]", text)


def unused(product: list[Tree], others: list[Tree]) -> set[str]:
    uses = Counter(name for _, tree in [*product, *others] for name in referred(tree))
    return {
        f"{path}: {name}"
        for path, tree in product
        if path not in FOR_USERS
        for name in defined(tree)
        if not uses[name]
    }


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(): pass", {"f"}),
        ("class C:\n def m(self): pass\n def n(self): self.m()\nC().n()", set()),
        ("def f(): pass\nENTRY = 'cli.entry:f'", set()),
        ("@app.command()\ndef f(): pass", set()),
        ("from a import f\ndef f(): pass", {"f"}),
    ],
)
def test_what_counts_as_unused(source, names):
    assert unused([("a.py", ast.parse(source))], []) == {f"a.py: {name}" for name in names}


def test_every_function_and_class_is_referred_to():
    left = {
        entry.rpartition(" ")[2]: entry for entry in unused([*trees(PRODUCT)], [*trees(OTHERS)])
    }
    assert {entry for name, entry in left.items() if name not in {*OVERRIDES, *DOCUMENTED}} == set()
    assert {*OVERRIDES, *DOCUMENTED} <= left.keys(), "an exception that is needed no more"


def test_what_is_kept_for_a_page_or_a_proof_is_there():
    for name, page in DOCUMENTED.items():
        assert name in (ROOT / page).read_text()
