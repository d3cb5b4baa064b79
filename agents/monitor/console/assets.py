"""The files of the page: our own, and the chart library from its wheel.

All are read and compressed on first use, then served from memory.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from settings.errors import HbError

PAGE = "index.html"
CHARTS = "plotly.min.js"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_STYLE = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
_CHECKED = "no-cache"
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """A file as it is served; `tag` changes with its content."""

    body: bytes
    packed: bytes
    kind: str
    tag: str
    cache: str = _CHECKED

    @classmethod
    def of(cls, name: str, body: bytes, cache: str = _CHECKED) -> "Asset":
        """Return a file, compressed as well."""
        tag = hashlib.sha256(body).hexdigest()[:16]
        return cls(body, gzip.compress(body, 6, mtime=0), _TYPES[Path(name).suffix], tag, cache)


@cache
def assets() -> Mapping[str, Asset]:
    """Return all files of the page by name, except the chart library."""
    folder = files("agents.monitor.console") / "static"
    files_ = {file.name: Asset.of(file.name, file.read_bytes()) for file in folder.iterdir()}
    # The address of the chart library holds its version, so it may be cached forever.
    page = files_[PAGE].body.replace(b"{charts}", f"{CHARTS}?v={version('plotly')}".encode())
    page = page.replace(b"{placeholders}", _placeholders(_library()))
    return {**files_, PAGE: Asset.of(PAGE, page)}


@cache
def charts() -> Asset:
    """Return the chart library; compressing it takes long, and the page does not wait for it."""
    return Asset.of(CHARTS, _library(), _FOREVER)


@cache
def _library() -> bytes:
    return _charts_path().read_bytes()


def _placeholders(library: bytes) -> bytes:
    """Return elements that keep the library from adding styles of its own, which are for maps.

    It adds them unless an element with their name exists; the page's policy would refuse them.
    """
    return b"".join(b'<meta id="%s">' % name for name in dict.fromkeys(_STYLE.findall(library)))


def _charts_path() -> Path:
    # Located, not imported: a worker draws nothing itself.
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise HbError("the console needs the chart library: pip install plotly")
    return Path(spec.origin).parent / "package_data" / CHARTS
