"""`hb produce`: publish patients from a file, and their labels later."""

from collections.abc import Callable
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.output import JsonOption, err, print_json
from cli.publishing import (
    LimitOption,
    SkipBadOption,
    command_again,
    print_summary,
    publish,
    refuse_bad,
)
from cli.settings import SetOption, SettingsOption, load
from settings.errors import InputError

if TYPE_CHECKING:
    from agents.clients.label_pace import LabelPace
    from agents.clients.patient_files import Source
    from agents.clients.produce import Checked, Production, Published, Trial
    from settings.model import Settings

_FEW = 50
"""As many patients may be ahead of their labels without a warning."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(produce)


def produce(
    context: typer.Context,
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
    limit: LimitOption = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Random order; the whole file must fit in memory.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed for the order and the label delays.")
    ] = None,
    label_delay: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Delay of each label after its patient: `5s`, `exp:5s` (on average) or"
            " `uniform:1s..10s`.",
        ),
    ] = "0",
    pace: Annotated[
        Literal["labels"] | None,
        typer.Option(
            help="With `labels`: send patients only as fast as the ensemble learns from those"
            " before them.",
        ),
    ] = None,
    start: Annotated[
        int,
        typer.Option("--from", metavar="ROW", min=1, help="Continue at this row; see --run."),
    ] = 1,
    run: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Prefix of generated ids; repeat it to continue an earlier run."
        ),
    ] = "",
    subject: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that names the person, if people come more than once."
            "  [default: columns.subject]",
        ),
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Publish no labels.")] = False,
    missing: Annotated[
        float,
        typer.Option(min=0, max=1, help="For experiments: the share of labels that never come."),
    ] = 0.0,
    wrong: Annotated[
        float,
        typer.Option(min=0, max=1, help="For experiments: the share of labels that are wrong."),
    ] = 0.0,
    skip_bad: SkipBadOption = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Publish patients, one per row, and later their labels.

    The settings say which learner sees which column, and which columns hold the ids and the labels;
    without an id column, opaque ids are generated. The whole file is checked before anything is
    sent. However the command ends, it prints what was published and how to continue.

    Examples: `hb produce patients.csv --pace labels`, or as in practice `hb produce patients.csv
    --rate 50 --label-delay exp:5s`.
    """
    from agents.clients.client import new_id
    from agents.clients.label_delays import parse_delay
    from agents.clients.label_pace import LabelPace
    from agents.clients.produce import Production, Trial

    delay = parse_delay(label_delay)
    loaded = load(settings, [*(set_ or ()), *subject_override(subject)])
    source = _source(file, dataset, loaded)
    if subject and not source.grouped:
        raise InputError(f"{source.name} has no column {subject!r}")
    if not source.labelled and not no_labels:
        if label_delay != "0":
            raise InputError(f"{source.name} has no labels; see columns.label in the settings")
        err.print(
            f"{source.name} has no labels, so none are published",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    if pace and (rate or label_delay != "0" or no_labels or missing):
        raise typer.BadParameter(
            "--pace labels sends each label with its patient: it cannot be combined with --rate,"
            " --label-delay, --no-labels or --missing"
        )
    if seed is None and (shuffle or missing or wrong):
        seed = int(new_id()[:6], 16)  # so that a continued run draws the same again
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
        start=start - 1,
        run=run or new_id()[:8],
    )
    paced = LabelPace(loaded) if pace and source.labelled else None
    production = Production(loaded, source, trial)
    if paced is not None:
        production = Production(
            loaded, source, trial, notice=paced.note, gate=paced.wait, room=paced.room
        )
    checked = production.check()
    refuse_bad(source.name, checked, skip_bad)
    if paced is None:
        _warn_if_ahead(checked, trial)

    def resume() -> str:
        start = production.done.taken + 1
        return command_again(context, start=start, run=trial.run, seed=trial.seed)

    _run(production, json, paced, resume)


def subject_override(column: str | None) -> list[str]:
    """Return `--subject` as the setting that it stands for.

    >>> subject_override("person")
    ['columns.subject="person"']
    """
    return [] if column is None else [f"columns.subject={dumps(column)}"]


def _source(file: Path | None, dataset: str | None, settings: "Settings") -> "Source":
    from agents.clients.patient_files import file_patients
    from agents.clients.splitting import Splitter

    if (file is None) == (dataset is None):
        raise typer.BadParameter("give a FILE or a --dataset")
    if file is not None:
        return file_patients(file, settings)
    from cli.demo.wdbc import DATASETS

    source = DATASETS[str(dataset)]()
    source.need(Splitter(settings, sealed=False).columns)
    return source


def _warn_if_ahead(checked: "Checked", trial: "Trial") -> None:
    """Warn if most patients would be diagnosed before the first labels are learned."""
    import numpy as np

    rows = min(checked.rows * trial.repeat, trial.limit or checked.rows * trial.repeat)
    if not (trial.labels and checked.labels) or rows < _FEW:
        return
    delay = float(np.median(trial.delay.draw(np.random.default_rng(0), 100)))
    ahead = min(rows, int(trial.rate * delay)) if trial.rate else rows
    if ahead > max(_FEW, rows // 5):
        err.print(
            f"hb: about {ahead:,} of {rows:,} patients will be diagnosed before the first labels"
            " are learned; --pace labels prevents that, --rate sends fewer per second",
            style="yellow", markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def _run(
    production: "Production", json: bool, paced: "LabelPace | None", resume: Callable[[], str]
) -> None:
    async def work(tick: Callable[[], None]) -> None:
        async with paced or nullcontext():
            await production.run(tick)
            if paced is not None:
                await paced.finish()

    published = production.done
    publish(published, work, lambda ended, _: _report(published, json, ended, paced, resume))


def _report(
    published: "Published",
    json: bool,
    ended: str,
    paced: "LabelPace | None",
    resume: Callable[[], str],
) -> None:
    command = resume() if ended else None
    if json:
        report: dict[str, Any] = {name: getattr(published, name) for name in _COUNTED}
        report |= {"skipped": dict(published.skipped), "seconds": round(published.seconds, 3)}
        report |= {"interrupted": bool(ended), "resume": command}
        print_json(report)
        return
    notes = {
        "labels were still waiting and were not published": published.waiting,
        "labels withheld (--missing)": published.withheld,
        "labels made wrong (--wrong)": published.wrong,
        "patients had an id that came before, and get no diagnosis of their own": (
            published.repeated
        ),
        "labels were not learned in time, and not waited for": paced.overtaken if paced else 0,
    }
    print_summary(
        f"{ended or 'published'}: {published.patients:,} patients, {published.labels:,} labels",
        published,
        notes,
        go_on=command and f"to continue, and to publish the labels again: {command}",
    )


_COUNTED = ("taken", "patients", "labels", "waiting", "withheld", "wrong", "repeated")
