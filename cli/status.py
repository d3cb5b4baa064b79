"""`hb status`: the whole system on one screen."""

import asyncio
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.output import EXIT_FOUND, JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import RATES, percent
from settings.errors import HbError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from agents.monitor.overview import Overview, TaskView
    from agents.monitor.scores import Scores
    from settings.model import Settings
    from streams.engine.health import Verdict

_EVERY = 2.0
_PATIENCE = 5.0
"""Seconds to wait for a broker."""
_MANY = 12
"""Above this many tasks, the tasks of an agent share a row."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(status)


def status(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every two seconds, until Ctrl-C.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show topics, lag, tasks and who holds them, waiting labels, weights and error rates.

    All of it is read from the broker. What is wrong is named first: exit code 1 if a task fails,
    reopens or is held by nobody, or if no worker runs; 4 if the broker does not answer.
    """
    loaded = load(settings, set_)
    if watch:
        if json:
            raise typer.BadParameter("--json and --watch exclude each other")
        _watch(loaded)
        return
    seen = _look(loaded)
    if json:
        figures = report(seen.overview) if seen.overview is not None else {}
        print_json({"verdict": seen.verdict.report(), **figures})
    else:
        out.print(_shown(loaded, seen))
    if seen.error is not None:
        raise seen.error
    if seen.verdict.troubled:
        sys.exit(EXIT_FOUND)


class Seen(NamedTuple):
    """The result of looking at the system: the system, or the error that prevented it."""

    overview: "Overview | None"
    error: HbError | None
    verdict: "Verdict"


def _look(settings: "Settings") -> Seen:
    from agents.monitor.system_health import system_verdict
    from agents.monitor.watch import look

    try:
        overview = asyncio.run(look(settings, _PATIENCE))
    except HbError as error:
        return Seen(None, error, system_verdict(None, error))
    return Seen(overview, None, system_verdict(overview))


def _watch(settings: "Settings") -> None:
    """Keep refreshing the display; if the broker is away, say so and wait for it."""
    from rich.live import Live

    shown: RenderableType = "looking"
    try:
        with Live(shown, console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                shown = _shown(settings, _look(settings))
                live.update(shown, refresh=True)
                time.sleep(_EVERY)
    except KeyboardInterrupt:
        out.print(shown)


def _shown(settings: "Settings", seen: Seen) -> "RenderableType":
    """Return what is wrong, if anything, and then everything."""
    from rich.console import Group
    from rich.text import Text

    style = "bold red" if seen.verdict.troubled else "yellow"
    wrong = [Text(_sentence(symptom.text), style) for symptom in seen.verdict.symptoms]
    if seen.overview is None:
        return Group(*wrong)
    return Group(*wrong, screen(settings, seen.overview))


def _sentence(text: str) -> str:
    """Return a symptom as a sentence.

    >>> _sentence("no worker runs")
    'No worker runs.'
    """
    return f"{text[0].upper()}{text[1:]}."


def report(found: "Overview") -> dict[str, Any]:
    """Return everything as JSON-ready data."""
    board = found.board
    return {
        "topics": [{"name": t.name, "records": t.records} for t in found.topics],
        "workers": found.members,
        "tasks": [
            {
                "agent": task.agent,
                "partition": task.partition,
                "holder": task.holder,
                "lag": dict(task.lag),
                "trouble": None if task.symptom is None else task.symptom.text,
            }
            for task in found.tasks
        ],
        "held_back": [asdict(held) for held in found.held_back],
        "lag": sum(task.behind for task in found.tasks),
        "waiting": found.waiting,
        "parked": found.parked,
        "max_pending": found.limit,
        "labelled": board.labelled,
        "taught": board.taught,
        "rates": board.rates,
        "rates_of_last_1000": board.recent,
        "rates_of_history": board.history,
        "error_rate_rise": board.risen,
        "disagreements": board.disagreements,
        "weights": board.weights,
        "exploration": board.exploration,
        "regret": board.regret,
        "regret_bound": board.bound,
        "answers": board.answers,
        "missed": board.missed,
        "miss_targets": board.miss_targets,
        "counts": dict(found.counts),
    }


def screen(settings: "Settings", found: "Overview") -> "RenderableType":
    """Return everything as one screen."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    workers = f"{len(found.members)} worker{'s' if len(found.members) != 1 else ''}"
    head = Text.assemble(
        (settings.name, "bold"),
        f" · fusion {settings.ensemble.mode} · {workers} · {time.strftime('%H:%M:%S')}",
    )
    return Group(
        head,
        score_table(found.board),
        *_sentences(found),
        Columns([_tasks(found.tasks), _topics(settings, found)], padding=(0, 3)),
    )


def score_table(board: "Scores") -> "Table":
    """Return error rates, weights and exploration, the ensemble first."""
    from agents.monitor.scores import ENSEMBLE

    rate, *others = RATES.values()
    numbers = (rate, "last 1000", *others, "weight", "exploring", "learned")
    shown = _plain("", *numbers, right=numbers)
    for name, rates in board.rates.items():
        recent = board.recent.get(name, {})
        row = [percent(rates["per"]), percent(recent.get("per"))]
        row += [percent(rates["fnr"]), percent(rates["fpr"])]
        if name == ENSEMBLE:
            row += ["", "", f"{board.labelled:,}"]
        else:
            row += [_number(board.weights.get(name)), percent(board.exploration.get(name))]
            row += [f"{board.learned.get(name, 0):,}"]
        shown.add_row(name, *row, style="bold" if name == ENSEMBLE else None)
    return shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _sentences(found: "Overview") -> list["RenderableType"]:
    from rich.text import Text

    counts, board = found.counts, found.board
    diagnosed = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    expired = counts["expired"] + counts["evicted"]
    so_far = (
        f"{diagnosed:,} diagnosed ({counts['diagnosed_incomplete']:,} incomplete):"
        f" {counts['settled']:,} labelled, {expired:,} expired, {found.waiting:,} waiting for"
        f" their label (room for {found.limit:,})"
    )
    early = f"; {found.parked:,} labels came before their patient" if found.parked else ""
    lines = [so_far + early]
    if board.taught:
        rate = percent(board.history["ensemble"]["per"])
        lines.append(f"{board.taught:,} of these labels were history: {rate} wrong, counted apart")
    if repeated := sum(found.repeated.values()):
        lines.append(
            f"{repeated:,} predictions were for patients that had one already or were over:"
            " are ids used twice?"
        )
    if asked := sum(board.answers.values()):
        referred = board.answers["referred"]
        missed = [
            f"{label} {percent(board.missed.get(label))} (target {percent(target)})"
            for label, target in board.miss_targets.items()
        ]
        control = f"; wrongly excluded: {', '.join(missed)}" if missed else ""
        lines.append(f"{referred:,} referred ({percent(referred / asked)}){control}")
    if board.regret is not None:
        bound = "" if board.bound is None else f", at most {board.bound:.1f} by theory"
        lines.append(f"regret against the best learner: {board.regret:.1f}{bound}")
    lines += _changes(board, diagnosed)
    experts = {name: w for name, w in board.weights.items() if name not in board.rates}
    if experts:
        said = ", ".join(f"{name} {weight:.3f}" for name, weight in experts.items())
        lines.append(f"weights of the fusion's experts: {said}")
    if any(topic.dead and topic.records for topic in found.topics):
        lines.append("Some records could not be used; see: hb deadletters")
    return [Text(line, "yellow" if line.startswith("there are") else "") for line in lines]


def _changes(board: "Scores", diagnosed: int) -> list[str]:
    """Say whether errors have become more frequent, and how often learners disagree.

    >>> from agents.monitor.scores import Scores
    >>> _changes(Scores(risen=0.12, disagreements=3), diagnosed=20)[0]
    'the error rate has risen by 12.0 % within the last 1000 labels, more than chance explains'
    >>> _changes(Scores(disagreements=3), diagnosed=20)
    ['learners disagreed about 15.0 % of the patients']
    """
    lines = []
    if board.risen:
        lines.append(
            f"the error rate has risen by {percent(board.risen)} within the last 1000 labels,"
            " more than chance explains"
        )
    if diagnosed:
        share = percent(board.disagreements / diagnosed)
        lines.append(f"learners disagreed about {share} of the patients")
    return lines


def _tasks(tasks: "list[TaskView]") -> "Table":
    shown = _plain("task", "held by", "behind", right=("behind",))
    if len(tasks) < _MANY:
        for task in tasks:
            holder = task.holder or "[red]nobody[/red]"
            shown.add_row(f"{task.agent}/{task.partition}", holder, f"{task.behind:,}")
        return shown
    for agent in dict.fromkeys(task.agent for task in tasks):
        mine = [task for task in tasks if task.agent == agent]
        free = sum(task.holder is None for task in mine)
        held = f"{len({t.holder for t in mine if t.holder})} workers"
        held += f", [red]{free} by nobody[/red]" if free else ""
        most = max(mine, key=lambda task: task.behind)
        behind = f"{sum(t.behind for t in mine):,} (most: {most.partition} {most.behind:,})"
        shown.add_row(f"{agent} ({len(mine)})", held, behind)
    return shown


def _topics(settings: "Settings", found: "Overview") -> "Table":
    count, prefix = settings.topics.partitions, settings.topics.prefix
    cut = f"{count} partition{'s' if count > 1 else ''} each"
    shown = _plain(f"topic ({cut})", "kept", right=("kept",))
    for topic in found.topics:
        shown.add_row(topic.name.removeprefix(prefix), f"{topic.records:,}")
    return shown


def _plain(*columns: str, right: tuple[str, ...]) -> "Table":
    """Return a table without lines, because a screen must hold three of them."""
    from rich import box

    made = table("", *columns, right=right)
    made.title, made.box, made.pad_edge = None, box.SIMPLE_HEAD, False
    return made
