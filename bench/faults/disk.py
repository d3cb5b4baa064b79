"""Damages a RocksDB folder, by seed, the way disks, power cuts and careless users do.

The folder must not be open. Each kind of damage returns the file it changed, so that a test can
report it, or None if there was nothing to damage.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

Draw: TypeAlias = random.Random
_SHARE = 0.5
_BLOCK = 64
"""How many bytes a flip inverts: more than a code that corrects single bits could repair."""


def damage(folder: Path, seed: int, kind: str | None = None) -> str | None:
    """Damage a folder once; return the kind and the file, None if there was nothing to damage."""
    draw = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    kinds = [kind] if kind is not None else draw.sample(sorted(KINDS), len(KINDS))
    for name in kinds:
        file = KINDS[name](folder, draw)
        if file is not None:
            return f"{name} ({file.name})"
    return None


def damage_worker(state: Path, seed: int) -> list[str]:
    """Damage about half of the task folders of a stopped worker, but at least one."""
    draw = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    folders = task_folders(state)
    chosen = [folder for folder in folders if draw.random() < _SHARE] or folders[:1]
    damages = [damage(folder, draw.randrange(1 << 30)) for folder in chosen]
    return [harm for harm in damages if harm is not None]


def wreck_worker(state: Path) -> list[str]:
    """Damage every task folder of a stopped worker in a way that opening it cannot miss."""
    damages = [damage(folder, 0, "current emptied") for folder in task_folders(state)]
    return [harm for harm in damages if harm is not None]


def task_folders(state: Path) -> list[Path]:
    """Return the folders of a worker's tasks."""
    return sorted(current.parent for current in state.glob("*/*/*/CURRENT"))


def _flip(file: Path, draw: Draw, start: float = 0.0, end: float = 1.0) -> Path | None:
    """Invert some bytes of a file, between two fractions of its length."""
    content = bytearray(file.read_bytes())
    first, last = int(start * len(content)), int(end * len(content))
    if first >= last:
        return None
    at = draw.randrange(first, max(first + 1, last - _BLOCK))
    for index in range(at, min(at + _BLOCK, len(content))):
        content[index] ^= 0xFF
    file.write_bytes(content)
    return file


def _cut(file: Path, draw: Draw) -> Path | None:
    """Keep only the beginning of a file."""
    size = file.stat().st_size
    if not size:
        return None
    with file.open("r+b") as opened:
        opened.truncate(draw.randrange(size))
    return file


def _empty(file: Path, _draw: Draw) -> Path | None:
    file.write_bytes(b"")
    return file


def _delete(file: Path, _draw: Draw) -> Path | None:
    file.unlink()
    return file


def _flip_data(file: Path, draw: Draw) -> Path | None:
    """Flip bytes among the data blocks, which come first in an SST file."""
    return _flip(file, draw, 0.0, 0.5)


def _one_of(pattern: str, act: Callable[[Path, Draw], Path | None]) -> "Kind":
    def apply(folder: Path, draw: Draw) -> Path | None:
        files = sorted(file for file in folder.glob(pattern) if file.is_file())
        return act(draw.choice(files), draw) if files else None

    return apply


def _manifest(act: Callable[[Path, Draw], Path | None]) -> "Kind":
    """Damage the manifest in use: earlier ones are leftovers that are never read."""

    def apply(folder: Path, draw: Draw) -> Path | None:
        current = folder / "CURRENT"
        file = folder / (current.read_text().strip() if current.exists() else "MANIFEST-none")
        return act(file, draw) if file.is_file() else None

    return apply


Kind: TypeAlias = Callable[[Path, Draw], Path | None]

KINDS: dict[str, Kind] = {
    "data block flipped": _one_of("*.sst", _flip_data),
    "table file flipped": _one_of("*.sst", _flip),
    "table file cut": _one_of("*.sst", _cut),
    "table file emptied": _one_of("*.sst", _empty),
    "table file deleted": _one_of("*.sst", _delete),
    "manifest flipped": _manifest(_flip),
    "manifest cut": _manifest(_cut),
    "manifest emptied": _manifest(_empty),
    "manifest deleted": _manifest(_delete),
    "current flipped": _one_of("CURRENT", _flip),
    "current emptied": _one_of("CURRENT", _empty),
    "current deleted": _one_of("CURRENT", _delete),
    "log flipped": _one_of("*.log", _flip),
    "log cut": _one_of("*.log", _cut),
    "log deleted": _one_of("*.log", _delete),
    "options emptied": _one_of("OPTIONS-*", _empty),
    "configuration flipped": _one_of("rocksdict-config.json", _flip),
}
