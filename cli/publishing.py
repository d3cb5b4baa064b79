"""What commands that publish patients have in common: options, progress, and how they end."""

import asyncio
import shlex
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from cli.output import EXIT_INTERRUPTED, err, interrupt_on_sigterm, out
from settings.errors import InputError

if TYPE_CHECKING:
    from agents.clients.produce import Checked, Published

_LINE_EVERY = 5.0
_GIVEN = {"COMMANDLINE", "ENVIRONMENT"}
"""Where parameters come from that are not the defaults."""
_Found = TypeVar("_Found")

LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of patients.  [default: all]")
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Skip rows that cannot be used, and count them.")
]


def refuse_bad(name: str, checked: "Checked", skip_bad: bool) -> None:
    """Say what cannot be used, before anything is sent."""
    if skip_bad or not checked.bad:
        return
    count = sum(column.rows for column in checked.bad.values())
    faults = "; ".join(
        f"{name}:{bad.line}: column {column!r}: expected {bad.expected}"
        + (f" ({bad.rows:,} such rows)" if bad.rows > 1 else "")
        for column, bad in checked.bad.items()
    )
    raise InputError(
        f"{faults}. Nothing was sent: {count:,} of {checked.rows:,} rows cannot be used;"
        " --skip-bad skips them"
    )


def command_again(context: typer.Context, **changed: object) -> str:
    """Return the command that is being run, word by word, but for the parameters in `changed`."""
    words = ["hb", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        given = context.params[name] if source and source.name in _GIVEN else None
        value = changed.get(name, given)
        for item in value if isinstance(value, list | tuple) else [value]:
            if item is None or item is False:
                continue
            words += parameter.opts[:1] if parameter.param_type_name == "option" else []
            words += [] if item is True else [str(item)]
    return shlex.join(words)


@contextmanager
def shown(published: "Published") -> "Iterator[Callable[[], None]]":
    """Show the progress: a bar on a terminal, occasional lines elsewhere; on standard error."""
    if not err.is_terminal:
        yield Lines(published)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("connecting", total=1.0)
        yield lambda: bar.update(task, completed=published.share, description=words_of(published))


class Lines:
    """Prints the progress every few seconds."""

    def __init__(self, published: "Published") -> None:
        self._done = published
        self._printed_at = time.monotonic()

    def __call__(self) -> None:
        """Print the progress, if it is time to."""
        if time.monotonic() - self._printed_at >= _LINE_EVERY:
            self._printed_at = time.monotonic()
            err.print(f"hb: {words_of(self._done)}", markup=False, highlight=False, soft_wrap=True)


def words_of(published: "Published") -> str:
    """Describe what was published so far.

    >>> from agents.clients.produce import Published
    >>> words_of(Published(patients=1200, labels=800, waiting=400, seconds=2.0))
    '1,200 patients, 600/s · 800 labels, 400 waiting'
    """
    rate = f", {published.patients / published.seconds:,.0f}/s" if published.seconds > 0.5 else ""
    waiting = f", {published.waiting:,} waiting" if published.waiting else ""
    labels = (
        f" · {published.labels:,} labels{waiting}" if published.labels or published.waiting else ""
    )
    return f"{published.patients:,} patients{rate}{labels}"


def publish(
    published: "Published",
    work: Callable[[Callable[[], None]], Coroutine[Any, Any, _Found]],
    report: Callable[[str, _Found | None], None],
) -> None:
    """Publish; however it ends, report what was published, and how it ended if not by itself."""
    interrupt_on_sigterm()
    try:
        with shown(published) as tick:
            outcome = asyncio.run(work(tick))
    except KeyboardInterrupt:
        report("interrupted", None)
        sys.exit(EXIT_INTERRUPTED)
    except BaseException:
        if published.patients or published.labels:
            report("stopped", None)
        raise
    report("", outcome)


def print_summary(
    first: str, published: "Published", notes: Mapping[str, int], *extra: str, go_on: str | None
) -> None:
    """Print what was published, how it went, and how to continue."""
    if published.seconds > 0.5:
        rate = published.patients / published.seconds
        first += f" in {published.seconds:.1f} s ({rate:,.0f} patients/s)"
    skipped = {
        f"rows skipped because of column {c!r}": n for c, n in sorted(published.skipped.items())
    }
    counted = [f"{count:,} {text}" for text, count in {**notes, **skipped}.items() if count]
    for line in (first, *(f"  {line}" for line in (*counted, *extra, *([go_on] if go_on else [])))):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
