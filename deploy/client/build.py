"""Builds the wheel of the client: `./hb build` calls it.

The project's packages are called `agents`, `schemas` and the like, which other distributions use
too. A program that only publishes patients and reads diagnoses should not have to care, so the
modules that the client needs are copied under one name of their own, `hedged_bandits`, with their
imports changed to it, and packed with what the base install of the project depends on.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[2]
NAME, ROOT_PACKAGE = "hedged-bandits-client", "hedged_bandits"
ENTRIES = ("agents.clients", "streams.kafka.tokens")
"""Where to begin; tokens are imported only by those who log in with them."""
PACKAGES = ("schemas", "learners", "settings", "streams", "agents")
_SAME = ("license", "license-files", "authors", "keywords", "classifiers", "requires-python")
_README = """# Hedged Bandits: the client

Publishes patients and labels on an ensemble, and reads diagnoses. The ensemble's settings file says
which broker, topics, features and labels there are.

```python
from hedged_bandits import Client

with Client("ensemble.toml") as client:
    diagnosis = client.diagnose({"radius": 14.2, "texture": 20.1, "age": 61})
```

The modules are those of the distribution `hedged-bandits`, under one import name; install one of
the two.
"""
_IMPORT = re.compile(
    rf"^(\s*(?:from|import)\s+)((?:{'|'.join(PACKAGES)})(?:\.[\w.]+)?)(?=\s)", re.MULTILINE
)


def build(out: Path) -> Path:
    """Build the wheel into a folder; return its path."""
    with tempfile.TemporaryDirectory(prefix="hb-client-") as name:
        folder = Path(name)
        package = folder / ROOT_PACKAGE
        for module in sorted(modules()):
            _copy(module, package)
        (package / "__init__.py").write_text(_rewritten(ROOT / ROOT_PACKAGE / "__init__.py"))
        (package / "py.typed").touch()
        shutil.copy(ROOT / "LICENSE", folder)
        (folder / "README.md").write_text(_README)
        (folder / "pyproject.toml").write_text(_project())
        hatchling = Path(sys.executable).parent / "hatchling"
        subprocess.run(  # noqa: S603 - our own program
            [hatchling, "build", "-t", "wheel", "-d", out.absolute()], cwd=folder, check=True
        )
    return max(out.glob(f"{NAME.replace('-', '_')}-*.whl"), key=lambda path: path.stat().st_mtime)


def modules() -> set[str]:
    """Return the modules that the client needs, by following its imports."""
    names: set[str] = set()
    waiting = list(ENTRIES)
    while waiting:
        module = waiting.pop()
        if module in names or not _file(module).exists():
            continue
        names.add(module)
        parents = module.split(".")
        waiting += [".".join(parents[:end]) for end in range(1, len(parents))]
        waiting += _imported(_file(module))
    return names


def _imported(file: Path) -> Iterator[str]:
    """Yield the modules of ours that a file needs in order to be imported."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in PACKAGES:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in PACKAGES)


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _copy(module: str, package: Path) -> None:
    source = _file(module)
    target = package / source.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_rewritten(source))


def _rewritten(source: Path) -> str:
    return _IMPORT.sub(rf"\1{ROOT_PACKAGE}.\2", source.read_text())


def _project() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    table = {
        "name": NAME,
        "version": project["version"],
        "description": "Publish patients to Hedged Bandits and read diagnoses",
        "readme": "README.md",
        **{name: project[name] for name in _SAME},
        "dependencies": project["dependencies"],
        # To log in with tokens of an OpenID Connect issuer.
        "optional-dependencies": {"oauth": project["optional-dependencies"]["oauth"]},
    }
    return tomlkit.dumps(
        {
            "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
            "project": table,
            "tool": {"hatch": {"build": {"targets": {"wheel": {"packages": [ROOT_PACKAGE]}}}}},
        }
    )
