"""What leans on private parts of aiokafka stands in `streams/kafka/client`, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "learners", "settings", "streams", "agents", "audit", "cli", "hedged_bandits")
CLIENT = ROOT / "streams/kafka/client"
PUBLIC = {
    "aiokafka", "aiokafka.abc", "aiokafka.admin", "aiokafka.admin.config_resource",
    "aiokafka.errors", "aiokafka.partitioner", "aiokafka.structs",
}  # fmt: skip
"""What aiokafka documents, and the hash that its partitioner shares with Java's."""
ASSIGNOR = {"aiokafka.coordinator.assignors.abstract", "aiokafka.coordinator.protocol"}
"""What an assignor is made of, by aiokafka's documented interface."""
EXCEPTIONS = {"streams/faust/assignor.py": ASSIGNOR}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of aiokafka that are imported; names of a package count if modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if of_aiokafka(alias.name))
        elif isinstance(node, ast.ImportFrom) and of_aiokafka(node.module or ""):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module == "aiokafka" and not exported(names) else [node.module]


def of_aiokafka(module: str) -> bool:
    return module.partition(".")[0] == "aiokafka"


def exported(names: list[str]) -> bool:
    """Tell classes of the package, which begin with a capital, from its modules."""
    return all(name.rpartition(".")[2][:1].isupper() for name in names)


def own_names(tree: ast.AST) -> set[str]:
    """Return the names that a file defines: functions, classes, fields and attributes of self."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node):
            own.add(node.attr)
    return own


def is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def private_names() -> set[str]:
    """Return the private names of aiokafka."""
    files = Path(aiokafka.__file__).parent.rglob("*.py")
    return {name for file in files for name in re.findall(r"\b_[a-z]\w*", file.read_text())}


PRIVATE = private_names() - {"_asdict", "_exit", "_fields", "_make", "_replace"}


def private_parts(source: str) -> list[str]:
    """Return the private attributes of aiokafka's objects that a file uses."""
    tree = ast.parse(source)
    own = own_names(tree)
    return [
        f"{node.lineno} {node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and not is_self(node)
        if node.attr in PRIVATE - own
    ]


def product() -> Iterator[tuple[str, str]]:
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if CLIENT not in file.parents:
                yield str(file.relative_to(ROOT)), file.read_text()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from aiokafka.protocol.admin import CreateAclsRequest", ["aiokafka.protocol.admin"]),
        ("from aiokafka import conn", ["aiokafka.conn"]),
        ("import aiokafka.client", ["aiokafka.client"]),
        ("from aiokafka import TopicPartition", ["aiokafka"]),
        ("from aiokafka import errors as kafka", ["aiokafka.errors"]),
    ],
)
def test_what_counts_as_imported(source, found):
    assert list(imported(ast.parse(source))) == found


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("await admin._send_request(x)", ["1 _send_request"]),
        ("class A:\n def f(self, other): return self._x + other._x\n def g(self): self._x = 1", []),
        ("record._replace(label=1)", []),
        ("a = consumer._client.cluster", ["1 _client"]),
    ],
)
def test_what_counts_as_private(source, private):
    assert private_parts(source) == private


def test_only_the_clients_folder_imports_undocumented_modules_of_aiokafka():
    undocumented = {
        f"{path}: {module}"
        for path, source in product()
        for module in imported(ast.parse(source))
        if module not in PUBLIC | EXCEPTIONS.get(path, set())
    }
    assert undocumented == set()


def test_only_the_clients_folder_uses_private_attributes_of_aiokafka():
    parts = {
        f"{path}:{part}"
        for path, source in product()
        if not path.startswith("streams/faust/")
        for part in private_parts(source)
    }
    assert parts == set()
