"""Progress of experiments: a bar for all, with the time left, and one for each that runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.output import err

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from experiments.catalogue import Options
    from experiments.report.result import Result


class Bars:
    """Bars that experiments advance by name; the total is weighted by expected time."""

    def __init__(self, progress: "Progress", names: Sequence[str], options: "Options") -> None:
        from experiments.catalogue import CATALOGUE

        share = options.steps / 10_000
        self._progress = progress
        self._seconds = {name: CATALOGUE[name].seconds for name in names}
        self._ticks = {name: max(1, round(CATALOGUE[name].ticks * share)) for name in names}
        self._tasks: dict[str, TaskID] = {}
        self._part = dict.fromkeys(names, 0.0)
        self._over = 0
        total = sum(self._seconds.values())
        self._whole = progress.add_task("all", total=total, visible=len(names) > 1)

    def tick(self, name: str) -> None:
        """Advance an experiment by one."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=self._ticks[name])
        self._progress.advance(self._tasks[name])
        # The expected number of ticks is a guess, so the bar is completed only at the end.
        self._move(name, min(self._part[name] + 1 / self._ticks[name], 0.95))

    def done(self, name: str, result: "Result") -> None:
        """Remove an experiment's bar, and print how long it took."""
        self._move(name, 1.0)
        if name in self._tasks:
            self._progress.remove_task(self._tasks.pop(name))
        self._over += 1
        if len(self._seconds) > 1:
            of = f"{self._over} of {len(self._seconds)}"
            err.print(f"{name}: {result.seconds:.0f} s ({of})", highlight=False)

    def _move(self, name: str, part: float) -> None:
        self._progress.advance(self._whole, (part - self._part[name]) * self._seconds[name])
        self._part[name] = part


@contextmanager
def bars(names: Sequence[str], options: "Options") -> Iterator[Bars]:
    """Show bars while experiments run."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True) as progress:
        yield Bars(progress, names, options)
