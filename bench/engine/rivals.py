"""How each rival of the engine is started, and what has to be installed for it.

Quix Streams gets its own environment, and Kafka Streams is compiled if there is a JDK; both are
kept in the user's cache. A rival that is unavailable is left out, and the report says why.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from platformdirs import user_cache_path

from bench.engine.peers import ours as own_engine
from bench.engine.peers import plain_faust, raw_relay
from streams.broker.jars import lock

QUIX = "3.28.1"


class Missing(Exception):  # noqa: N818  # a finding, not an error
    """A rival cannot run here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Rival:
    """One program that does the job, and the number of records it is measured on."""

    name: str
    records: int
    quick: int
    command: Callable[[], Sequence[str]]
    options: tuple[str, ...] = ()


def rivals() -> list[Rival]:
    """Return the engine itself and all its rivals."""
    return [
        Rival("engine", 2_000_000, 500_000, ours(own_engine)),
        Rival("plain_faust", 20_000, 3_000, ours(plain_faust)),
        Rival("take_faust", 30_000, 5_000, ours(plain_faust), (plain_faust.TAKE,)),
        Rival("quix_at_least_once", 200_000, 50_000, quix, ("at-least-once",)),
        Rival("quix_exactly_once", 200_000, 50_000, quix, ("exactly-once",)),
        Rival("kafka_streams_at_least_once", 800_000, 200_000, streams, ("at_least_once",)),
        Rival("kafka_streams_exactly_once", 800_000, 200_000, streams, ("exactly_once_v2",)),
        Rival("raw_relay", 2_000_000, 500_000, ours(raw_relay)),
    ]


def ours(module: ModuleType) -> Callable[[], Sequence[str]]:
    """Return the command of a rival that runs in this environment."""
    return lambda: [sys.executable, "-m", module.__name__]


def quix() -> Sequence[str]:
    """Return the command of Quix Streams, after installing it if necessary."""
    folder = _cache() / f"quix-{QUIX}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _install(folder, f"quixstreams=={QUIX}")
    return [str(python), str(_source("quix.py"))]


def _install(folder: Path, package: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    uv = shutil.which("uv")
    if uv is not None:
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", python, package],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", str(folder)],
            [python, "-m", "pip", "install", "--quiet", package],
        ]
    for step in steps:
        process = subprocess.run(step, check=False, capture_output=True, text=True)  # noqa: S603
        if process.returncode:
            raise Missing(f"{package} could not be installed: {process.stderr.strip()[-200:]}")
    (folder / "complete").touch()


def streams() -> Sequence[str]:
    """Return the command of Kafka Streams, in the broker's release, compiled if necessary."""
    java, compiler = shutil.which("java"), shutil.which("javac")
    if java is None or compiler is None:
        raise Missing(
            "Kafka Streams needs a JDK to compile its job: apt install default-jdk-headless"
        )
    source = _source("KafkaStreamsJob.java")
    folder = _cache() / f"kafka-streams-{lock().kafka}"
    classes, path = folder / "KafkaStreamsJob.class", folder / "class-path"
    if not classes.exists() or classes.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_streams_jars())
        step = [compiler, "-cp", path.read_text(), "-d", str(folder), str(source)]
        process = subprocess.run(step, check=False, capture_output=True, text=True)  # noqa: S603
        if process.returncode:
            raise Missing(
                f"the Kafka Streams job does not compile: {process.stderr.strip()[-200:]}"
            )
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return [java, quiet, "-cp", f"{folder}:{path.read_text()}", "KafkaStreamsJob"]


def _streams_jars() -> str:
    import jgo

    try:
        artifacts = jgo.resolve(f"org.apache.kafka:kafka-streams:{lock().kafka}")
        log = next(artifact.version for artifact in artifacts if artifact.artifactId == "slf4j-api")
        artifacts += jgo.resolve(f"org.slf4j:slf4j-simple:{log}")[:1]
        return ":".join(dict.fromkeys(str(artifact.resolve()) for artifact in artifacts))
    except (OSError, RuntimeError) as error:
        raise Missing(f"Kafka Streams could not be downloaded: {error}") from error


def _cache() -> Path:
    return user_cache_path("hb", appauthor=False) / "bench"


def _source(name: str) -> Path:
    return Path(str(files("bench.engine.peers").joinpath(name)))
