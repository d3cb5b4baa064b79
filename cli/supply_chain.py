"""What hb is made of: its bill of materials (CycloneDX), and its known vulnerabilities.

Both are read from the lock files, so they are about exactly what is installed. pip-audit asks the
package index for vulnerabilities. `python -m cli.supply_chain` is the check of `hb check`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import typer

from cli.dev import ROOT, need_clone

LOCKS = ("run", "worker")
"""Lock files of what users install; tools for developers are not part of it."""
AUDITED = "dev"
"""The lock file whose packages are looked up: it holds all others, tools included."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Development")(sbom)


def sbom() -> None:
    """Print the bill of materials as CycloneDX JSON: every locked package and every jar.

    The jars are those of every Kafka that can be chosen, with their licences.

    Example: `hb sbom > bom.json`.
    """
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
    content = json.dumps(parts, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content)}",
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
            if match := _PIN.match(part):
                hashes.setdefault(match[1].lower(), set()).update(_HASH.findall(part))
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
    """Return the jars of every Kafka that can be chosen, with the licences their POMs name."""
    from streams.broker.jars import Jar, licences, locks

    named = licences()
    users: dict[Jar, list[str]] = {}
    for pinned in locks():
        for jar in pinned.jars:
            users.setdefault(jar, []).append(pinned.kafka)
    return [
        {
            "type": "library",
            "group": jar.group,
            "name": jar.artifact,
            "version": jar.version,
            "purl": f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}",
            "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
            "licenses": [{"license": {"name": name}} for name in named[jar.coordinate]],
            "properties": [{"name": "hb:kafka", "value": kafka} for kafka in kafkas],
        }
        for jar, kafkas in users.items()
    ]


def main(arguments: Sequence[str] = ()) -> int:
    """Let pip-audit look for known vulnerabilities; say so where it could not."""
    answer = _ask(arguments)
    untold = [package["name"] for package in answer if "skip_reason" in package]
    if untold or not answer:
        which = f"of {len(untold)} of {len(answer)} packages" if answer else "of any package"
        sys.stderr.write(
            f"known vulnerabilities {which} were not looked up: the database does not say\n"
        )
    vulnerabilities = [line for package in answer for line in _vulnerabilities(package)]
    for line in vulnerabilities:
        sys.stderr.write(f"{line}\n")
    return 1 if vulnerabilities else 0


def _ask(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Return what pip-audit says about each locked package; nothing if it got no answer."""
    program = Path(sys.executable).with_name("pip-audit")
    lock = ROOT / "requirements" / f"{AUDITED}.lock"
    options = ["--requirement", str(lock), "--disable-pip", "--require-hashes", "--format=json"]
    quiet = ["--progress-spinner=off", "--timeout=10"]
    process = subprocess.run(  # noqa: S603 - of our own environment
        [program, *options, *quiet, *arguments], capture_output=True, check=False
    )
    try:
        return list(json.loads(process.stdout)["dependencies"])
    except ValueError:
        return []


def _vulnerabilities(package: Mapping[str, Any]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {vulnerability['id']},"
        f" mended in {', '.join(vulnerability['fix_versions']) or 'none'}"
        for vulnerability in package.get("vulns", ())
    ]


if __name__ == "__main__":
    sys.exit(main())
