"""Results on disk: one JSON file per experiment, so that an interrupted `all` can resume.

A stored result is used only if it was made with the same options by the same code: the key holds a
digest of all code that the experiment imports; comments and docstrings do not count.
"""

import ast
import re
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.report.result import Result

_IMPORT = re.compile(r"^\s*(?:from|import) ((?:experiments|learners)[\w.]*)", re.MULTILINE)


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, name: str, key: dict[str, Any]) -> Result | None:
        """Return a result made with exactly this key, if there is one."""
        stored = self._read(name)
        return Result.from_dict(stored["result"]) if stored and stored["key"] == key else None

    def latest(self, name: str) -> Result | None:
        """Return a result whatever its key."""
        stored = self._read(name)
        return Result.from_dict(stored["result"]) if stored else None

    def save(self, name: str, key: dict[str, Any], result: Result) -> None:
        """Write a result atomically: a reader never sees half of it."""
        import orjson

        self.folder.mkdir(parents=True, exist_ok=True)
        options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_INDENT_2
        text = orjson.dumps({"key": key, "result": result.to_dict()}, option=options)
        half = self.folder / f".{name}.json.part"
        half.write_bytes(text)
        half.replace(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any] | None:
        import orjson

        try:
            stored: dict[str, Any] = orjson.loads(self._path(name).read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError:
            return None  # truncated by a crash of an earlier version: run again
        return stored


@cache
def code_digest(module: str) -> str:
    """Return a digest of a module and all of the project's modules that it imports."""
    digest = blake2b(digest_size=8)
    for name in sorted(_reached(module)):
        digest.update(_code(name).encode())
    return digest.hexdigest()


def _reached(module: str) -> set[str]:
    names, todo = set(), [module]
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += _IMPORT.findall(_source(name))
    return {name for name in names if not name.startswith("experiments.report")}


@cache
def _code(module: str) -> str:
    """Return a module's code without comments and docstrings."""
    tree = ast.parse(_source(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
    return ast.unparse(tree)


@cache
def _source(module: str) -> str:
    place = find_spec(module)
    return Path(place.origin).read_text(encoding="utf-8") if place and place.origin else ""
