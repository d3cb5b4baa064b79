"""Where a worker's pages are: a file in the state folder that other processes on the machine read.

A worker writes it once its pages are served and removes it on exit. A file left behind by a killed
worker names a process that no longer exists, and is ignored.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import orjson
import psutil

_FOLDER = "workers"


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """A running worker: its process, the agents it runs, and the address of its pages."""

    pid: int
    born: float
    """When its process started, to distinguish it from a later process with the same id."""
    agents: tuple[str, ...]
    address: str
    console: bool


@contextmanager
def announced(state: Path, agents: Sequence[str], address: str, *, console: bool) -> Iterator[None]:
    """Publish where this worker's pages are, until the block ends."""
    page = WorkerPage(os.getpid(), psutil.Process().create_time(), tuple(agents), address, console)
    folder = state / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    file, fresh = folder / f"{page.pid}.json", folder / f"{page.pid}.new"
    fresh.write_bytes(orjson.dumps(asdict(page)))
    fresh.replace(file)  # renamed into place, so that no reader sees a partial file
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def worker_pages(state: Path) -> list[WorkerPage]:
    """Return the workers of a state folder that serve pages on this machine."""
    pages = [_read(file) for file in sorted((state / _FOLDER).glob("*.json"))]
    return [page for page in pages if page is not None and _lives(page)]


def url(host: str, port: int, *, tls: bool = False) -> str:
    """Return what to type into a browser on this machine.

    >>> url("127.0.0.1", 6066), url("0.0.0.0", 80), url("::", 80)
    ('http://127.0.0.1:6066', 'http://127.0.0.1:80', 'http://[::1]:80')
    """
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not to listen on
    host = everywhere.get(host, host)
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _read(file: Path) -> WorkerPage | None:
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
        return msgspec.json.decode(file.read_bytes(), type=WorkerPage)
    return None  # removed meanwhile, or written by another release


def _lives(page: WorkerPage) -> bool:
    try:
        return psutil.Process(page.pid).create_time() == page.born
    except (psutil.Error, ValueError, TypeError, OverflowError):  # a number that is not a process
        return False
