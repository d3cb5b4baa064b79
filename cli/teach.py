"""`hb teach`: past patients with known labels, before the first live patient."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.output import JsonOption, print_json
from cli.publishing import (
    LimitOption,
    SkipBadOption,
    command_again,
    print_summary,
    publish,
    refuse_bad,
)
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import percent

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
    context: typer.Context,
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
            help="Instead of FILE: the patients and labels that another ensemble's topics still"
            " hold, such as those of this one under its old settings.",
        ),
    ] = None,
    limit: LimitOption = None,
    skip_bad: SkipBadOption = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Teach the ensemble from past patients whose labels are known.

    They go through the running pipeline in order, each label right behind its diagnosis, only as
    fast as the ensemble learns. They are marked as history: the ensemble learns from them as from
    any patient, but they do not count in the current error rates.

    If it was interrupted, run it again: patients that were learned from already are left out.

    Examples: `hb teach history.csv`, `hb teach --from old.toml`.
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
    lesson = Lesson(loaded, source, production, pace, command_again(context))
    publish(
        production.done, lesson.give, lambda ended, scores: _report(lesson, json, ended, scores)
    )


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
        return (await look(self.settings)).scores


def _source(file: Path | None, other: Path | None, settings: "Settings") -> "PastPatients":
    from agents.clients.patient_files import file_patients
    from agents.clients.recorded_patients import recorded_patients
    from agents.clients.teaching import PastPatients, run_of

    if file is not None:
        return PastPatients(file_patients(file, settings), run_of(file))
    past = recorded_patients(load(other, None), settings, str(other))
    return PastPatients(asyncio.run(past), "")


def _report(lesson: Lesson, json: bool, ended: str, scores: "Scores | None") -> None:
    published, left, pace = lesson.production.done, lesson.source.left_out, lesson.pace
    command = lesson.command if ended else None
    rates = {} if scores is None else scores.history.get("ensemble", {})
    if json:
        report: dict[str, Any] = {
            "patients": published.patients, "labels": published.labels, "learned": pace.learned,
            "learned_before": left.learned, "unlabelled": left.unlabelled,
            "repeated": left.repeated, "not_waited_for": pace.overtaken,
            "skipped": dict(published.skipped), "seconds": round(published.seconds, 3),
            "interrupted": bool(ended), "resume": command,
            "history": None if scores is None else {"labelled": scores.taught, **rates},
        }  # fmt: skip
        print_json(report)
        return
    notes = {
        "had been learned before and were left out": left.learned,
        "have no label and were left out": left.unlabelled,
        "have an id that came before and were left out": left.repeated,
        "labels were not learned in time, and not waited for": pace.overtaken,
    }
    extra = []
    if scores is not None and scores.taught:
        wrong = percent(rates.get("per"))
        extra = [f"of all {scores.taught:,} patients of history {wrong} were diagnosed wrongly"]
    first = f"{ended or 'taught'}: {published.patients:,} patients, {pace.learned:,} labels learned"
    print_summary(first, published, notes, *extra, go_on=command and f"to continue: {command}")
