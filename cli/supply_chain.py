"""What hb is made of: its bill of materials (CycloneDX), and whether weaknesses of it are known.

Both are read from the lock files, so they are about exactly what is installed. The database of
weaknesses is the one of the package index, asked at the place that pip knows. `python -m
cli.supply_chain` is the check of `hb check`.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import typer

from cli.dev import ROOT, need_clone

LOCKS = ("run", "worker")
"""Lock files of what users install; tools for developers are not part of it."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_AT_ONCE = 8
_PATIENCE = 10.0
Ask = Callable[[str, str], Mapping[str, Any]]
"""Returns what the index says about a version of a package."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Development")(sbom)


def sbom() -> None:
    """Print the bill of materials as CycloneDX JSON: every locked package and every jar."""
    need_clone("requirements", "sbom")
    typer.echo(json.dumps(bill(), indent=1))


def pins(names: Iterable[str] = LOCKS) -> dict[str, str]:
    """Return the locked version of each package."""
    texts = [(ROOT / "requirements" / f"{name}.lock").read_text() for name in names]
    return {name.lower(): version for text in texts for name, version in _PIN.findall(text)}


def bill() -> dict[str, Any]:
    """Return the bill of materials; the same lock files give the same bill."""
    from importlib.metadata import version

    parts = [*_packages(), *_jars()]
    told = json.dumps(parts, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, told)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "hedged-bandits",
                "version": version("hedged-bandits"),
            }
        },
        "components": parts,
    }


def _packages() -> list[dict[str, Any]]:
    hashes: dict[str, set[str]] = {}
    for name in LOCKS:
        text = (ROOT / "requirements" / f"{name}.lock").read_text()
        for part in re.split(r"\n(?=\S)", text):
            if found := _PIN.match(part):
                hashes.setdefault(found[1].lower(), set()).update(_HASH.findall(part))
    return [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            # One for each file of the release: which is installed depends on the machine.
            "properties": [{"name": "hb:sha256", "value": value} for value in sorted(hashes[name])],
        }
        for name, version in sorted(pins().items())
    ]


def _jars() -> list[dict[str, Any]]:
    from streams.broker.jars import lock

    return [
        {
            "type": "library",
            "group": jar.group,
            "name": jar.artifact,
            "version": jar.version,
            "purl": f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}",
            "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        }
        for jar in lock().jars
    ]


def weaknesses(packages: Mapping[str, str], ask: Ask) -> list[str]:
    """Return a line for each known weakness that is not withdrawn."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda pin: (pin, ask(*pin)), sorted(packages.items()))
        return [
            f"{name} {version}: {known['id']}, mended in {', '.join(known['fixed_in']) or 'none'}"
            for (name, version), answer in answers
            for known in answer["vulnerabilities"]
            if not known.get("withdrawn")
        ]


def ask_index(name: str, version: str) -> Mapping[str, Any]:
    """Ask the package index that pip uses."""
    from pip._internal.models.index import PyPI

    place = f"{PyPI.pypi_url}/{name}/{version}/json"
    with urllib.request.urlopen(place, timeout=_PATIENCE) as answer:  # noqa: S310 - pip's own index
        found: Mapping[str, Any] = json.load(answer)
    return found


def main(ask: Ask = ask_index) -> int:
    """Check for known weaknesses; say so where nobody can be asked."""
    try:
        found = weaknesses(pins(), ask)
    except (OSError, ValueError, KeyError, ImportError) as error:
        sys.stderr.write(
            f"known weaknesses were not looked up: the package index cannot be asked"
            f" ({type(error).__name__})\n"
        )
        return 0
    for line in found:
        sys.stderr.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
