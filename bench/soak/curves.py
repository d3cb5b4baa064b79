"""What is watched during a soak, and the lines through it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil

_MB = 1 << 20
_SETTLED = 0.5
"""The part of a process's life that is left out: caches fill and pools grow to their size, which
takes ten minutes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a worker's process: seconds since the start, memory, open files."""

    at: float
    pid: int
    memory_mb: float
    open_files: int


@dataclass(slots=True)
class Curves:
    """The samples of a run, and the time that each patient took, by when it was published."""

    samples: list[Sample] = field(default_factory=list)
    disk: list[tuple[float, float]] = field(default_factory=list)
    latencies: list[tuple[float, float]] = field(default_factory=list)

    def look(self, at: float, pids: Sequence[int], folder: Path) -> None:
        """Take a sample of every process that is there, and of the disk."""
        for pid in pids:
            try:
                process = psutil.Process(pid)
                memory = process.memory_full_info().uss / _MB
                self.samples.append(Sample(at, pid, memory, process.num_fds()))
            except psutil.Error:  # just killed
                continue
        self.disk.append((at, _size(folder) / _MB))

    def growth(self, figure: str) -> float:
        """Return by how much the longest-lived worker's figure rose per hour, as a straight line.

        One process is followed, because a restart starts again.
        """
        longest = self._longest()
        begin, end = (longest[0].at, longest[-1].at) if longest else (0.0, 0.0)
        settled = [s for s in longest if s.at >= begin + _SETTLED * (end - begin)]
        return slope([s.at for s in settled], [getattr(s, figure) for s in settled]) * 3600

    def _longest(self) -> list[Sample]:
        lives: dict[int, list[Sample]] = {}
        for sample in self.samples:
            lives.setdefault(sample.pid, []).append(sample)
        return max(lives.values(), key=lambda life: life[-1].at - life[0].at, default=[])

    def p99(self, begin: float, end: float) -> float:
        """Return the 99th percentile of the time that patients of a part of the run took, in ms."""
        within = [took for at, took in self.latencies if begin <= at < end]
        return float(np.percentile(within, 99) * 1000) if within else float("nan")

    def plain(self, step: float) -> dict[str, list[float]]:
        """Return the curves, a point every `step` seconds.

        Memory and open files are those of the longest-lived worker: in a mean over all of them,
        the ones that have just been restarted would hide what grows.
        """
        end = max((at for at, _ in self.disk), default=0.0)
        edges = np.arange(0.0, end + step, step)
        longest = self._longest()
        memory = [(s.at, s.memory_mb) for s in longest]
        files = [(s.at, float(s.open_files)) for s in longest]
        return {
            "seconds": edges[:-1].tolist(),
            "memory_mb_longest_lived": _means(memory, edges),
            "open_files_longest_lived": _means(files, edges),
            "disk_mb": _means(self.disk, edges),
            "p99_ms": [self.p99(a, b) for a, b in pairwise(edges)],
        }


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the slope of the straight line through points, by least squares.

    >>> slope([0, 1, 2], [5, 7, 9]), slope([1], [1])
    (2.0, 0.0)
    """
    if len(xs) < 2:
        return 0.0
    return round(float(np.polyfit(xs, ys, 1)[0]), 9)


def _means(points: Sequence[tuple[float, float]], edges: np.ndarray) -> list[float]:
    means = []
    for begin, end in pairwise(edges):
        within = [value for at, value in points if begin <= at < end]
        means.append(float(np.mean(within)) if within else float("nan"))
    return means


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:  # compacted away meanwhile
            continue
    return total
