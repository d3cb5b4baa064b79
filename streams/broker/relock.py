"""Rewrites the locks: `python -m streams.broker.relock [KAFKA_VERSION]`, default the newest.

Without a version `jars.lock` is rewritten, else `jars-VERSION.lock`; one of an older release of the
same Kafka has to be deleted by hand. `licences.json` names the licences of every jar, as its POM or
the nearest parent that has any names them.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import jgo
from jgo.maven import MavenContext

FOLDER = Path(__file__).parent


def _newest(group: str, artifact: str) -> str:
    project = MavenContext().project(group, artifact)
    project.update()
    versions = [
        version for version in project.metadata.versions if version.replace(".", "").isdigit()
    ]
    return str(max(versions, key=lambda version: [int(part) for part in version.split(".")]))


def _coordinate(artifact: Any) -> str:
    return f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}"


def _entry(artifact: Any) -> dict[str, Any]:
    content = Path(artifact.resolve()).read_bytes()
    return {
        "jar": _coordinate(artifact),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _licences(component: Any) -> list[str]:
    """Return the names of the licences that a component may be used under."""
    pom = component.pom()
    names = [str(name).strip() for name in pom.values("licenses/license/name")]
    if names or pom.element("parent") is None:
        return names
    group, artifact, version = (
        pom.value(f"parent/{key}") for key in ("groupId", "artifactId", "version")
    )
    return _licences(component.context.project(group, artifact).at_version(version))


def _record_licences(artifacts: list[Any]) -> None:
    file = FOLDER / "licences.json"
    by_jar = json.loads(file.read_text())
    for artifact in artifacts:
        by_jar[_coordinate(artifact)] = _licences(artifact.component)
    pinned = [json.loads(lock.read_text())["jars"] for lock in FOLDER.glob("jars*.lock")]
    coordinates = sorted({jar["jar"] for jars in pinned for jar in jars})
    lines = [f" {json.dumps(jar)}: {json.dumps(by_jar[jar])}" for jar in coordinates]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(arguments: list[str]) -> None:
    """Resolve Kafka and its log writer, download all jars, record sizes, hashes and licences."""
    kafka = arguments[0] if arguments else _newest("org.apache.kafka", "kafka_2.13")
    artifacts = jgo.resolve(f"org.apache.kafka:kafka_2.13:{kafka}")
    # The log writer must be of the same release as the log interface that Kafka depends on.
    slf4j = next(artifact.version for artifact in artifacts if artifact.artifactId == "slf4j-api")
    artifacts += jgo.resolve(f"org.slf4j:slf4j-simple:{slf4j}")[:1]
    jars = [_entry(artifact) for artifact in artifacts]
    lock = FOLDER / (f"jars-{kafka}.lock" if arguments else "jars.lock")
    lock.write_text(json.dumps({"kafka": kafka, "jars": jars}, indent=1) + "\n")
    _record_licences(artifacts)
    size = sum(jar["size"] for jar in jars)
    sys.stdout.write(f"Kafka {kafka}: {len(jars)} jars, {size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
