"""The jars of the embedded broker: which ones it needs, and how they are downloaded.

`jars.lock` names every jar with its size and SHA-256, so nothing is resolved at run time and
only pinned code runs; `jars-VERSION.lock` does the same for each earlier Kafka that can be chosen.
`licences.json` has the jars' licences. `python -m streams.broker.relock` rewrites these files.
"""

import fcntl
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any

from platformdirs import user_cache_path

from settings.errors import BrokerError

DOWNLOADS_AT_ONCE = 4
_LOCK = re.compile(r"jars(-[0-9.]+)?\.lock$")


@dataclass(frozen=True)
class Jar:
    """One file of the lock: its Maven coordinate, size and hash."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def coordinate(self) -> str:
        """Its name in the lock: group, artifact and version."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def path(self) -> Path:
        """Its path inside a Maven repository."""
        name = f"{self.artifact}-{self.version}.jar"
        return Path(*self.group.split("."), self.artifact, self.version, name)

    def intact_in(self, folder: Path) -> bool:
        """The jar is in `folder`, complete and unaltered."""
        file = folder / self.path
        if not file.is_file() or file.stat().st_size != self.size:
            return False
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256


@dataclass(frozen=True)
class Pinned:
    """The pinned broker: Kafka's version and its jars in class-path order."""

    kafka: str
    jars: tuple[Jar, ...]
    digest: str


class Progress:
    """Receives the progress of the first download; this one ignores it."""

    def begin(self, jars: int, size: int) -> None:
        """This many jars and bytes are missing."""

    def advance(self, size: int) -> None:
        """This many more bytes have arrived."""

    def end(self) -> None:
        """The download is over."""

    def say(self, line: str) -> None:
        """Something else takes a while, or went wrong harmlessly."""


def lock(kafka: str | None = None) -> Pinned:
    """Return the pinned Kafka of a version such as 4.0 or 4.0.2; without one, the newest."""
    version = kafka or locks()[-1].kafka
    matching = [pinned for pinned in locks() if f"{pinned.kafka}.".startswith(f"{version}.")]
    if not matching:
        offered = ", ".join(pinned.kafka for pinned in locks())
        raise BrokerError(f"Kafka {version} is not offered; choose one of: {offered}")
    return matching[-1]


@cache
def locks() -> tuple[Pinned, ...]:
    """Return every Kafka that can be run here, the newest last."""
    folder = files("streams.broker")
    pinned_kafkas = [
        _read_lock(file.read_bytes()) for file in folder.iterdir() if _LOCK.match(file.name)
    ]
    return tuple(sorted(pinned_kafkas, key=lambda pinned: parts_of(pinned.kafka)))


def licences() -> dict[str, list[str]]:
    """Return the names of the licences of every jar, by coordinate, as the jars' POMs have them."""
    names: dict[str, list[str]] = json.loads(
        (files("streams.broker") / "licences.json").read_text()
    )
    return names


def parts_of(version: str) -> tuple[int, ...]:
    """Return a version as numbers, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))


def _read_lock(content: bytes) -> Pinned:
    pinned = json.loads(content)
    jars = tuple(_read_jar(line) for line in pinned["jars"])
    return Pinned(pinned["kafka"], jars, hashlib.sha256(content).hexdigest()[:16])


def _read_jar(line: dict[str, Any]) -> Jar:
    group, artifact, version = line["jar"].split(":")
    return Jar(group, artifact, version, line["size"], line["sha256"])


def cache_folder() -> Path:
    """Return the folder of everything that can be downloaded or rebuilt."""
    return user_cache_path("hb", appauthor=False) / "broker"


def class_path(progress: Progress | None = None, kafka: str | None = None) -> str:
    """Return the class path of a pinned broker, after fetching missing or damaged jars.

    Every jar is hashed on every start: 44 MB take about 50 ms, far less than a start of the broker.
    """
    folder = cache_folder() / "jars"
    jars = lock(kafka).jars
    if _missing(jars, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            _fetch(_missing(jars, folder), folder, progress or Progress())
    return ":".join(str(folder / jar.path) for jar in jars)


def _missing(jars: tuple[Jar, ...], folder: Path) -> list[Jar]:
    return [jar for jar in jars if not jar.intact_in(folder)]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time work in `folder`."""
    # The kernel releases this lock when the process ends, so a crash leaves nothing behind.
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(jars: list[Jar], folder: Path, progress: Progress) -> None:
    if not jars:  # another process fetched them while this one waited
        return
    progress.begin(len(jars), sum(jar.size for jar in jars))
    try:
        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
            for _ in pool.map(_downloader(folder, progress), jars):
                pass
    finally:
        progress.end()


def _downloader(folder: Path, progress: Progress) -> Callable[[Jar], None]:
    # jgo is slow to import and rarely needed.
    from jgo.config import GlobalSettings  # noqa: PLC0415 (see above)
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415 (see above)

    one_by_one = Lock()

    def advance(size: int) -> None:
        with one_by_one:
            progress.advance(size)

    @contextmanager
    def report(_name: str, _size: int) -> Iterator[Callable[[int], None]]:
        yield advance

    context = MavenContext(
        resolver=PythonResolver(progress_callback=report), repo_cache=folder, timeout=30
    )
    # jgo's settings file may name further repositories, or a mirror in place of `central`.
    context.remote_repos |= GlobalSettings.load().repositories

    def download(jar: Jar) -> None:
        # jgo writes in place and assumes that any file of that name is complete.
        (folder / jar.path).unlink(missing_ok=True)
        try:
            context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
        except (OSError, RuntimeError) as error:
            raise BrokerError(
                f"cannot download the broker's jars ({type(error).__name__} at {jar.path.name}); "
                f"{_advice(error)}, or set broker.bootstrap to a running Kafka"
            ) from error
        if not jar.intact_in(folder):
            (folder / jar.path).unlink(missing_ok=True)
            raise BrokerError(
                f"{jar.path.name} has another checksum than its pin, so it was removed;"
                " download it from a source that you trust"
            )

    return download


def _advice(error: Exception) -> str:
    if "SSL" in type(error).__name__:  # of whichever HTTP client jgo uses
        return "if your network inspects TLS, name its certificates in REQUESTS_CA_BUNDLE"
    return "check the network"
