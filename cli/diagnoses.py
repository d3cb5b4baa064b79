"""`hb diagnoses`: the diagnoses of the ensemble, and how certain they are."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import chance, interval, percent
from settings.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from schemas.records import Diagnosis, Opinion
    from settings.model import Settings

_SHORT = 14
_RECORD = "track record"
_WIDEST = 1_000
_ABOUT = ("time", "patient", "diagnosis", "chance", _RECORD)
_WAITING = "waiting for diagnoses; Ctrl-C to stop"
_COLUMNS_FOR = 4
"""Up to this many learners get a column of their own, if there is room."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(diagnoses)


def diagnoses(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing new diagnoses until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="How many to show.  [default: 20]"),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="SUBJECT",
            help="Show the visits of this person only, of all that the topic keeps.",
        ),
    ] = None,
    full_ids: Annotated[bool, typer.Option("--full-ids", help="Do not shorten the ids.")] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object; with --follow, one line per diagnosis."
        ),
    ] = False,
) -> None:
    """Show the latest diagnoses: the answer, its chance, the track record, each learner's opinion.

    The track record says how many of the diagnoses like it were right, with an interval that holds
    at all times; see `hb diagnosis ID`. An opinion is the accuracy that the learner estimates for
    its own rule in the patient's cube, preceded by its label if it differs from the diagnosis. `?`
    marks an exploration, `new` a learner with no experience in that cube. Where there is no room
    for opinions, the last column says how many learners agree. With `--follow` and `--limit`, the
    command stops after that many new diagnoses.

    Examples: `hb diagnoses`, `hb diagnoses --follow`, `hb diagnoses -n 100 --json`,
    `hb diagnoses --subject s5`.
    """
    loaded = load(settings, set_)
    view = View(loaded, full_ids or subject is not None)
    if subject is not None and follow:
        raise InputError("--subject shows visits that were, --follow those to come: give one")
    if not follow:
        latest = asyncio.run(_latest(loaded, limit or 20, subject))
        if json:
            print_json({"diagnoses": [_plain(diagnosis) for diagnosis in latest]})
        else:
            out.print(view.table(latest))
        return
    try:
        asyncio.run(_follow(loaded, view, limit, json))
    except KeyboardInterrupt:
        sys.stdout.flush()


async def _latest(
    settings: "Settings", count: int, subject: str | None = None
) -> "list[Diagnosis]":
    from agents.clients.one_patient import person
    from agents.clients.pseudonyms import Pseudonyms
    from agents.clients.topic_reader import TopicReader
    from schemas.reading import Reader
    from schemas.records import Diagnosis
    from streams.kafka.topics import Topics

    if whose := Pseudonyms(settings).subject(subject):
        return (await person(settings, whose))[-count:]
    reader = Reader(Diagnosis)
    async with TopicReader(settings, [Topics.of(settings).diagnoses], "start") as topic:
        return [reader.one(record.value) for record in await topic.last(count)]


async def _follow(settings: "Settings", view: "View", limit: int | None, json: bool) -> None:
    from agents.clients.client import Diagnoses

    # The line that says so is printed once reading has begun: everything diagnosed later is shown.
    async with Diagnoses(settings) as arriving, aclosing(_first(arriving, limit)) as stream:
        if not out.is_terminal:
            err.print(_WAITING, highlight=False)
        if json:
            await _print_lines(stream)
        elif out.is_terminal:
            await view.live(stream)
        else:
            async for diagnosis in stream:
                out.print(view.line(diagnosis), markup=False, highlight=False, soft_wrap=True)


async def _first(
    diagnoses: "AsyncIterable[Diagnosis]", limit: int | None
) -> "AsyncGenerator[Diagnosis, None]":
    count = 0
    async for diagnosis in diagnoses:
        yield diagnosis
        count += 1
        if count == limit:
            return


async def _print_lines(stream: "AsyncIterator[Diagnosis]") -> None:
    from schemas.writing import encode

    async for diagnosis in stream:
        sys.stdout.write(encode(diagnosis).decode() + "\n")
        sys.stdout.flush()


def _plain(diagnosis: "Diagnosis") -> object:
    import msgspec

    return msgspec.to_builtins(diagnosis)


class View:
    """Diagnoses in readable form."""

    def __init__(self, settings: "Settings", full_ids: bool = False) -> None:
        self._positive = settings.positive
        self._learners = list(settings.learners)
        self._full_ids = full_ids
        self._has_columns = len(self._learners) <= _COLUMNS_FOR

    def table(self, diagnoses: "list[Diagnosis]", caption: str = "") -> "RenderableType":
        """Return a table, newest last; with a column for each learner if there is room."""
        from rich.measure import Measurement

        if not diagnoses:
            return "no diagnoses yet"
        rows = self._table(diagnoses, caption, self._learners, self._opinions)
        unlimited = out.options.update(max_width=_WIDEST)
        if self._has_columns and Measurement.get(out, unlimited, rows).maximum <= out.width:
            return rows
        return self._table(diagnoses, caption, ["agree"], self._agreement)

    def _table(
        self,
        diagnoses: "list[Diagnosis]",
        caption: str,
        names: list[str],
        opinions: "Callable[[Diagnosis], list[str]]",
    ) -> "Table":
        from rich import box

        rows = table("", *_ABOUT, *names, right=("chance",))
        rows.box, rows.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
        for column in rows.columns:
            column.no_wrap = True
        rows.title, rows.caption = None, caption or None
        for diagnosis in diagnoses:
            self._add(rows, diagnosis, opinions(diagnosis))
        return rows

    async def live(self, stream: "AsyncIterator[Diagnosis]") -> None:
        """Show a table that updates."""
        from rich.live import Live

        count = 0
        recent: deque[Diagnosis] = deque(maxlen=max(out.height - 6, 5))

        def shown() -> "RenderableType":
            if not recent:
                return _WAITING
            return self.table(list(recent), f"{count:,} so far; Ctrl-C to stop")

        with Live(get_renderable=shown, console=out, refresh_per_second=8):
            async for diagnosis in stream:
                count += 1
                recent.append(diagnosis)

    def line(self, diagnosis: "Diagnosis") -> str:
        """Return one diagnosis as a line."""
        answer = f"refer ({diagnosis.label}?)" if referred(diagnosis) else diagnosis.label
        parts = [_time(diagnosis.at), self._id(diagnosis), answer, _chance(diagnosis)]
        record = f"{_RECORD}: {_record(diagnosis)}"
        if not self._has_columns:
            return "  ".join([*parts, record, f"{self._agreement(diagnosis)[0]} agree"])
        opinions = zip(self._learners, self._opinions(diagnosis), strict=True)
        return "  ".join([*parts, record, *(f"{name}: {text}" for name, text in opinions)])

    def _add(self, rows: "Table", diagnosis: "Diagnosis", opinions: list[str]) -> None:
        from rich.text import Text

        style = "bold red" if diagnosis.label == self._positive else "green"
        label = Text(diagnosis.label, style)
        if referred(diagnosis):
            label = Text.assemble(("refer", "bold yellow"), f" ({diagnosis.label}?)")
        if not diagnosis.complete:
            label.append(" (incomplete)", "yellow")
        texts = [Text(text) for text in (_chance(diagnosis), _record(diagnosis), *opinions)]
        rows.add_row(_time(diagnosis.at), Text(self._id(diagnosis)), label, *texts)

    def _opinions(self, diagnosis: "Diagnosis") -> list[str]:
        heard = diagnosis.learners
        return [_opinion(heard.get(name), diagnosis.label) for name in self._learners]

    def _agreement(self, diagnosis: "Diagnosis") -> list[str]:
        heard = diagnosis.learners.values()
        agree = sum(opinion.label == diagnosis.label for opinion in heard)
        return [f"{agree} of {len(self._learners)}"]

    def _id(self, diagnosis: "Diagnosis") -> str:
        return diagnosis.id if self._full_ids else short(diagnosis.id)


def short(name: str) -> str:
    """Return an id, without its middle if it is long: ids that are given in turn begin alike.

    >>> short("8877d5d6-69117"), short("0123456789abcdef")
    ('8877d5d6-69117', '01234…9abcdef')
    """
    return name if len(name) <= _SHORT else f"{name[:5]}…{name[-7:]}"


def referred(diagnosis: "Diagnosis") -> bool:
    """Tell whether a diagnosis is no answer."""
    from schemas.records import REFER

    return diagnosis.answer == REFER


def _chance(diagnosis: "Diagnosis") -> str:
    """Return the chance of the label; a record without chances has none."""
    return "-" if diagnosis.chance is None else chance(diagnosis.chance.get(diagnosis.label, 0.0))


def _record(diagnosis: "Diagnosis") -> str:
    """Return how many diagnoses like this one were right, with the interval of their share."""
    record = diagnosis.track_record
    if record is None or not record.cases:
        return "none yet"
    return f"{record.right:,} of {record.cases:,} ({interval(record.low, record.high)})"


def _opinion(opinion: "Opinion | None", decided: str) -> str:
    """Describe a learner's accuracy in the patient's cube; its label only if it differs."""
    if opinion is None:
        return "missing"
    if opinion.label is None:
        return "no opinion"
    label = "" if opinion.label == decided else f"{opinion.label} "
    exploring = "?" if opinion.exploring else ""
    if opinion.accuracy is None or not opinion.trials:
        return f"{label}new{exploring}"
    return f"{label}{percent(opinion.accuracy)}{exploring}"


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%H:%M:%S")
