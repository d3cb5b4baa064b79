"""`hb produce`: publish patients from a file, and their labels later."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.output import EXIT_INTERRUPTED, JsonOption, err, out, print_json
from cli.settings import SetOption, SettingsOption, load
from settings.errors import HbError, InputError

if TYPE_CHECKING:
    from agents.clients.patient_files import Source
    from agents.clients.produce import Production, Published
    from settings.model import Settings

_LINE_EVERY = 5.0


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(produce)


def produce(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A CSV file with a header, or `.jsonl`: one patient per row."
        ),
    ] = None,
    dataset: Annotated[
        Literal["wdbc"] | None, typer.Option(help="A bundled data set instead of FILE.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Patients per second.  [default: as fast as possible]"),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Send the file this many times.")] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of patients.  [default: all]")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="In random order; the whole file must fit in memory.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the order and of the labels' delays.")
    ] = None,
    label_delay: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Delay of each label after its patient: `5s`, `exp:5s` (on average) or"
            " `uniform:1s..10s`.",
        ),
    ] = "0",
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Publish no labels.")] = False,
    missing: Annotated[
        float,
        typer.Option(min=0, max=1, help="For experiments: the share of labels that never come."),
    ] = 0.0,
    wrong: Annotated[
        float,
        typer.Option(min=0, max=1, help="For experiments: the share of labels that are wrong."),
    ] = 0.0,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip rows that cannot be used, and count them.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Publish patients, one per row, and their labels later.

    The settings say which learner sees which column, and which columns are the ids and the labels;
    where there are no ids, opaque ones are made up. Ctrl-C stops and says what was published.
    """
    from agents.clients.label_delays import parse_delay
    from agents.clients.produce import Production, Trial

    delay = parse_delay(label_delay)
    loaded = load(settings, set_)
    source = _source(file, dataset, loaded)
    if not source.labelled and not no_labels:
        if label_delay != "0":
            raise InputError(f"{source.name} has no labels; see columns.label in the settings")
        err.print(
            f"{source.name} has no labels: none are published",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    trial = Trial(
        rate=rate,
        repeat=repeat,
        limit=limit,
        shuffle=shuffle,
        seed=seed,
        labels=not no_labels,
        delay=delay,
        missing=missing,
        wrong=wrong,
        skip_bad=skip_bad,
    )
    _run(Production(loaded, source, trial), json)


def _source(file: Path | None, dataset: str | None, settings: "Settings") -> "Source":
    from agents.clients.patient_files import file_patients
    from agents.clients.splitting import Splitter

    if (file is None) == (dataset is None):
        raise typer.BadParameter("give a FILE or a --dataset")
    if file is not None:
        return file_patients(file, settings)
    from cli.demo.wdbc import DATASETS

    source = DATASETS[str(dataset)]()
    source.need(Splitter(settings).columns)
    return source


def _run(production: "Production", json: bool) -> None:
    """Publish; however it ends, report what was published."""
    try:
        with shown(production.done) as tick:
            asyncio.run(production.run(tick))
    except KeyboardInterrupt:
        _report(production.done, json, ended="interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except HbError:
        if not json and production.done.patients:
            _report(production.done, json, ended="stopped")
        raise
    _report(production.done, json, ended="")


@contextmanager
def shown(done: "Published") -> "Iterator[Callable[[], None]]":
    """Show the progress: a bar on a terminal, occasional lines elsewhere; on standard error."""
    if not err.is_terminal:
        yield Lines(done)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("connecting", total=1.0)
        yield lambda: bar.update(task, completed=done.share, description=_words(done))


class Lines:
    """Prints the progress every few seconds."""

    def __init__(self, done: "Published") -> None:
        self._done = done
        self._said = time.monotonic()

    def __call__(self) -> None:
        """Print the progress, if it is time to."""
        if time.monotonic() - self._said >= _LINE_EVERY:
            self._said = time.monotonic()
            err.print(f"hb: {_words(self._done)}", markup=False, highlight=False, soft_wrap=True)


def _words(done: "Published") -> str:
    """Describe what was published so far.

    >>> from agents.clients.produce import Published
    >>> _words(Published(patients=1200, labels=800, waiting=400, seconds=2.0))
    '1,200 patients, 600/s · 800 labels, 400 waiting'
    """
    rate = f", {done.patients / done.seconds:,.0f}/s" if done.seconds > 0.5 else ""
    waiting = f", {done.waiting:,} waiting" if done.waiting else ""
    labels = f" · {done.labels:,} labels{waiting}" if done.labels or done.waiting else ""
    return f"{done.patients:,} patients{rate}{labels}"


def _report(done: "Published", json: bool, ended: str) -> None:
    if json:
        report: dict[str, Any] = {name: getattr(done, name) for name in _COUNTED}
        skipped = dict(done.skipped)
        seconds = round(done.seconds, 3)
        report |= {"skipped": skipped, "seconds": seconds, "interrupted": bool(ended)}
        print_json(report)
        return
    line = f"{ended or 'published'}: {done.patients:,} patients, {done.labels:,} labels"
    if done.seconds > 0.5:
        line += f" in {done.seconds:.1f} s ({done.patients / done.seconds:,.0f} patients/s)"
    out.print(line, markup=False, highlight=False, soft_wrap=True)
    notes = {
        "labels were still waiting and were not published": done.waiting,
        "labels withheld (--missing)": done.withheld,
        "labels made wrong (--wrong)": done.wrong,
        "patients had an id that came before, and get no diagnosis of their own": done.repeated,
        **{f"rows skipped because of column {c!r}": n for c, n in sorted(done.skipped.items())},
    }
    for what, count in notes.items():
        if count:
            out.print(f"  {count:,} {what}", markup=False, highlight=False, soft_wrap=True)


_COUNTED = ("patients", "labels", "waiting", "withheld", "wrong", "repeated")
