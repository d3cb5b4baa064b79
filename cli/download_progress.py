"""Progress of the first download: a bar on a terminal, plain lines elsewhere; on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from cli.output import err
from streams.broker.jars import Progress

_LINE_EVERY = 0.25


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield an object that shows the progress of the broker's first start."""
    if not err.is_terminal:
        yield Lines()
        return
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Bars(*columns, console=err, transient=True) as bars:
        yield Bar(bars)


class Lines(Progress):
    """One line per quarter."""

    def __init__(self) -> None:
        self.total = self.done = self.reported = 0.0

    def begin(self, jars: int, size: int) -> None:
        """Print the size of the download."""
        self.total, self.done, self.reported = size, 0, 0
        self.say(f"fetching the broker: {jars} files, {size / 1e6:.0f} MB (once)")

    def advance(self, size: int) -> None:
        """Print a line at each quarter."""
        self.done += size
        if self.done / self.total >= self.reported + _LINE_EVERY:
            self.reported += _LINE_EVERY
            self.say(f"{100 * self.reported:.0f} % fetched")

    def say(self, line: str) -> None:
        """Print a line."""
        err.print(f"hb: {line}", markup=False, highlight=False, soft_wrap=True)


class Bar(Progress):
    """A bar with the time left."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.task: TaskID | None = None

    def begin(self, jars: int, size: int) -> None:
        """Show the bar."""
        self.task = self.bars.add_task(f"fetching the broker ({jars} files, once)", total=size)

    def advance(self, size: int) -> None:
        """Advance the bar."""
        if self.task is not None:
            self.bars.advance(self.task, size)

    def end(self) -> None:
        """Remove the bar."""
        if self.task is not None:
            self.bars.remove_task(self.task)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.bars.console.print(f"hb: {line}", markup=False, highlight=False)
