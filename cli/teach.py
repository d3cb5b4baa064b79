"""`hb teach`: patients of the past with known labels, before the first patient of the present."""

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.output import EXIT_INTERRUPTED, JsonOption, out, print_json
from cli.produce import refuse_bad, shown
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import percent
from settings.errors import HbError

if TYPE_CHECKING:
    from agents.clients.label_pace import LabelPace
    from agents.clients.produce import Production
    from agents.clients.teaching import PastPatients
    from agents.monitor.scores import Scores
    from settings.model import Settings


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(teach)


def teach(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A CSV file with a header, or `.jsonl`: one patient per row, with its label.",
        ),
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SETTINGS",
            help="In place of FILE: the patients and labels that the topics of another ensemble"
            " hold, such as this one under its old settings.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of patients.  [default: all]")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip rows that cannot be used, and count them.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Teach the ensemble from patients of the past whose labels are known.

    They go through the running pipeline in order, each label right behind its diagnosis, as fast as
    what is learned keeps up. They are marked as history: the ensemble learns from them as from any
    patient, but error rates of the present do not count them.

    The same command goes on where it was interrupted: who was learned before is left out.
    """
    from agents.clients.label_pace import LabelPace
    from agents.clients.produce import Production, Trial

    if (file is None) == (other is None):
        raise typer.BadParameter("give a FILE, or --from the settings of another ensemble")
    loaded = load(settings, set_)
    source = _source(file, other, loaded)
    trial = Trial(limit=limit, skip_bad=skip_bad, history=True)
    pace = LabelPace(loaded, strict=True)
    production = Production(loaded, source, trial, notice=pace.note, gate=pace.wait, room=pace.room)
    refuse_bad(source.name, production.check(), skip_bad)
    lesson = Lesson(loaded, source, production, pace, _command(file, other, settings, skip_bad))
    _run(lesson, json)


class Lesson(NamedTuple):
    """What is taught, how, and the command that goes on with it."""

    settings: "Settings"
    source: "PastPatients"
    production: "Production"
    pace: "LabelPace"
    command: str

    async def give(self, tick: Callable[[], None]) -> "Scores":
        """Teach; return the scores of the ensemble afterwards."""
        from agents.clients.teaching import learned_before
        from agents.monitor.watch import look

        async with self.pace:
            self.source.known = await learned_before(self.settings)
            await self.production.run(tick)
            await self.pace.finish()
        return (await look(self.settings)).board


def _source(file: Path | None, other: Path | None, settings: "Settings") -> "PastPatients":
    from agents.clients.kept_patients import kept_patients
    from agents.clients.patient_files import file_patients
    from agents.clients.teaching import PastPatients, run_of

    if file is not None:
        return PastPatients(file_patients(file, settings), run_of(file))
    taken = kept_patients(load(other, None), settings, str(other))
    return PastPatients(asyncio.run(taken), "")


def _command(file: Path | None, other: Path | None, settings: Path | None, skip_bad: bool) -> str:
    words = ["hb", "teach", *([str(file)] if file else ["--from", str(other)])]
    words += ["--settings", str(settings)] if settings else []
    return shlex.join([*words, *(["--skip-bad"] if skip_bad else [])])


def _run(lesson: Lesson, json: bool) -> None:
    """Teach; however it ends, report what was taught."""
    try:
        with shown(lesson.production.done) as tick:
            board = asyncio.run(lesson.give(tick))
    except KeyboardInterrupt:
        _report(lesson, json, "interrupted", None)
        sys.exit(EXIT_INTERRUPTED)
    except HbError:
        if lesson.production.done.patients:
            _report(lesson, json, "stopped", None)
        raise
    _report(lesson, json, "", board)


def _report(lesson: Lesson, json: bool, ended: str, board: "Scores | None") -> None:
    done, left, pace = lesson.production.done, lesson.source.left_out, lesson.pace
    command = lesson.command if ended else None
    rates = {} if board is None else board.history.get("ensemble", {})
    if json:
        report: dict[str, Any] = {
            "patients": done.patients, "labels": done.labels, "learned": pace.learned,
            "learned_before": left.learned, "unlabelled": left.unlabelled,
            "repeated": left.repeated, "not_waited_for": pace.overtaken,
            "skipped": dict(done.skipped), "seconds": round(done.seconds, 3),
            "interrupted": bool(ended), "resume": command,
            "history": None if board is None else {"labelled": board.taught, **rates},
        }  # fmt: skip
        print_json(report)
        return
    line = f"{ended or 'taught'}: {done.patients:,} patients, {pace.learned:,} labels learned"
    if done.seconds > 0.5:
        line += f" in {done.seconds:.1f} s ({done.patients / done.seconds:,.0f} patients/s)"
    notes = {
        "had been learned before and were left out": left.learned,
        "have no label and were left out": left.unlabelled,
        "have an id that came before and were left out": left.repeated,
        "labels were not learned in time, and not waited for": pace.overtaken,
        **{f"rows skipped because of column {c!r}": n for c, n in sorted(done.skipped.items())},
    }
    lines = [line, *(f"  {count:,} {what}" for what, count in notes.items() if count)]
    if board is not None and board.taught:
        wrong = percent(rates.get("per"))
        lines.append(
            f"  of all {board.taught:,} patients of history {wrong} were diagnosed wrongly"
        )
    if command:
        lines.append(f"  to go on: {command}")
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
